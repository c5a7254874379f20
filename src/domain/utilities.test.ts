import { expect, test } from 'vitest'
import { backoff } from './backoff.ts'
import { BoundedMap } from './bounded-map.ts'
import { untilAborted } from './until-aborted.ts'

test('each pause is twice as long as the one before, up to the limit', () => {
  const pauses = [1, 2, 3, 4, 5, 5_000].map((failures) => backoff(failures, { firstMs: 10, longestMs: 75 }))
  expect(pauses).toEqual([10, 20, 40, 75, 75, 75])
})

test('a bounded map forgets what was set longest ago', () => {
  const map = new BoundedMap<string, number>(2).set('a', 1).set('b', 2).set('a', 3).set('c', 4)
  expect([...map]).toEqual([
    ['a', 3],
    ['c', 4],
  ])
})

test('whoever waits for an abort hears of one before and after', async () => {
  await untilAborted(AbortSignal.abort())
  const abort = new AbortController()
  const waiting = untilAborted(abort.signal)
  abort.abort()
  await waiting
})

import { expect, test } from 'vitest'
import { memoryForTest } from '../../test/helpers/platform-memory.ts'
import { catchUp, createLastSeen, missedSince } from './catch-up.ts'

const isLater = (mark: string, than: string): boolean => Number(mark) > Number(than)

const marks = { isLater, msOf: (mark: string) => Number(mark) * 60_000 }
const limits = { most: 9, mostRead: 9 }

const after = (all: readonly string[]) =>
  async function* (since: string) {
    for (const one of all) if (isLater(one, since)) yield one
  }

test('a mark moves forward only, also when events arrive together and out of order', async () => {
  const seen = createLastSeen(memoryForTest(), marks)
  await Promise.all(['10', '9', '12', '11'].map((mark) => seen.advance('C1', mark)))
  expect(await seen.get('C1')).toBe('12')
  expect(await seen.get('C2')).toBe(undefined)
})

test('what was missed is handled once, oldest first, and what could not be stored is read again', async () => {
  const memory = memoryForTest()
  const handled: string[] = []
  let fails = true
  const run = () =>
    catchUp({
      // As after a restart.
      lastSeen: createLastSeen(memory, marks),
      place: 'C1',
      read: after(['1', '2', '3', '4']),
      markOf: (message) => message,
      handle: async (message) => {
        if (message === '3' && fails) throw new Error('the store is away')
        handled.push(message)
        return true
      },
      ...limits,
    })
  expect(await run()).toEqual({ handled: 0, complete: true })
  await createLastSeen(memory, marks).advance('C1', '1')
  await expect(run()).rejects.toThrow('the store is away')
  fails = false
  expect(await run()).toEqual({ handled: 2, complete: true })
  expect(await run()).toEqual({ handled: 0, complete: true })
  expect(handled).toEqual(['2', '3', '4'])
})

test.each([
  ['handled', { most: 2, mostRead: 9 }, true],
  ['read', { most: 9, mostRead: 2 }, false],
])('no more are %s than asked for, and the result says that there were more', async (_what, most, isForUs) => {
  const lastSeen = createLastSeen(memoryForTest(), marks)
  await lastSeen.advance('C1', '0')
  const seen: string[] = []
  const handle = async (mark: string): Promise<boolean> => {
    seen.push(mark)
    return isForUs
  }
  const parts = { lastSeen, place: 'C1', read: after(['1', '2', '3']), markOf: (mark: string) => mark, handle, ...most }
  expect((await catchUp(parts)).complete).toBe(false)
  expect((await catchUp(parts)).complete).toBe(true)
  expect(seen).toEqual(['1', '2', '3'])
})

test('a live message corrects a mark that is more than an hour later, which only a wrong clock makes', async () => {
  const seen = createLastSeen(memoryForTest(), marks)
  await seen.advance('C1', '1000')
  await seen.advanceLive('C1', '940')
  expect(await seen.get('C1')).toBe('1000')
  await seen.advance('C1', '900')
  expect(await seen.get('C1')).toBe('1000')
  await seen.advanceLive('C1', '939')
  expect(await seen.get('C1')).toBe('939')
})

const hour = 60 * 60_000

test.each([
  ['an hour ago', -hour, -hour],
  ['five days ago', -120 * hour, -72 * hour],
  ['an hour ahead', hour, -71 * hour],
  ['a year ahead', 8_760 * hour, (8_760 - 72) * hour],
])('after a last message %s, three days are read at most', (_what, seen, since) => {
  const now = Date.parse('2026-03-01T12:00:00Z')
  expect(missedSince(now + seen, now) - now).toBe(since)
})

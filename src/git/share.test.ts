import { expect, test } from 'vitest'
import { createShare } from './share.ts'

test('callers during a run share the next one, which begins after they asked', async () => {
  const share = createShare()
  let begun = 0
  let ask = Promise.withResolvers<void>()
  const run = async (): Promise<number> => {
    begun += 1
    const number = begun
    await ask.promise
    return number
  }
  const first = share('refs', run)
  const meanwhile = [share('refs', run), share('refs', run)]
  const other = share('config', run)
  expect(begun).toBe(2)
  ask.resolve()
  expect(await Promise.all([first, other, ...meanwhile])).toEqual([1, 2, 3, 3])
  // Nobody is asking any more: a new run.
  ask = Promise.withResolvers()
  ask.resolve()
  expect(await share('refs', run)).toBe(4)
})

test('a failed run fails its own callers only', async () => {
  const share = createShare()
  const failing = share('refs', async () => {
    throw new Error('locked')
  })
  const next = share('refs', async () => 'answered')
  await expect(failing).rejects.toThrow('locked')
  await expect(next).resolves.toBe('answered')
})

test('a caller during the shared next run waits for one more', async () => {
  const share = createShare()
  const ends: (() => void)[] = []
  const run = (): Promise<number> => new Promise((resolve) => ends.push(() => resolve(ends.length)))
  const first = share('refs', run)
  const second = share('refs', run)
  ends[0]?.()
  await first
  await expect.poll(() => ends.length).toBe(2)
  const third = share('refs', run)
  ends[1]?.()
  await second
  await expect.poll(() => ends.length).toBe(3)
  ends[2]?.()
  await third
})

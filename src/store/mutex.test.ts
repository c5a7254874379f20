import { expect, test } from 'vitest'
import { Mutex } from './mutex.ts'

test('turns are given in the order of asking', async () => {
  const turn = new Mutex(1000)
  const order: number[] = []
  const worker = async (number: number): Promise<void> => {
    await turn.acquire()
    order.push(number)
    await Promise.resolve()
    turn.release()
  }
  await Promise.all([1, 2, 3, 4].map(worker))
  expect(order).toEqual([1, 2, 3, 4])
  expect(turn.inUse).toBe(0)
})

test('those who wait for a holder that never ends get an error, and the holder can still give back', async () => {
  const turn = new Mutex(20)
  await turn.acquire()
  const waiting = [turn.acquire(), turn.acquire()]
  for (const each of waiting) await expect(each).rejects.toMatchObject({ code: 'store-failed' })
  expect(turn.inUse).toBe(1)
  turn.release()
  expect(turn.inUse).toBe(0)
  await turn.acquire()
  turn.release()
})

test('a long queue that moves is never cut off', async () => {
  const turn = new Mutex(40)
  const holdFor = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))
  const worker = async (): Promise<void> => {
    await turn.acquire()
    await holdFor(10)
    turn.release()
  }
  await Promise.all(Array.from({ length: 12 }, worker))
  expect(turn.inUse).toBe(0)
})

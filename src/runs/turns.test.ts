import { expect, test } from 'vitest'
import { createTurns } from './turns.ts'

const never = new AbortController().signal
const withStoreRetry = (wait: () => Promise<void>): Promise<void> => wait()

test('one at a time per key, in order of arrival, and other keys do not wait', async () => {
  const turns = createTurns()
  const order: string[] = []
  const first = await turns.take('a', never, withStoreRetry)
  const visit = async (name: string): Promise<void> => {
    const leave = await turns.take('a', never, (wait) => {
      order.push(`${name} waits`)
      return wait()
    })
    order.push(name)
    leave()
  }
  const second = visit('second')
  const third = visit('third')
  const other = await turns.take('b', never, async () => void order.push('never'))
  other()
  order.push('first done')
  first()
  await Promise.all([second, third])
  expect(order).toEqual(['second waits', 'third waits', 'first done', 'second', 'third'])
})

test('whoever gives up does not let the next one in before those ahead are done', async () => {
  const turns = createTurns()
  const first = await turns.take('a', never, withStoreRetry)
  const impatient = new AbortController()
  const second = turns.take('a', impatient.signal, withStoreRetry)
  let inside = false
  const visit = async (): Promise<void> => {
    const leave = await turns.take('a', never, withStoreRetry)
    inside = true
    leave()
  }
  const third = visit()
  impatient.abort('stop')
  await expect(second).rejects.toBe('stop')
  await new Promise((resolve) => setImmediate(resolve))
  expect(inside).toBe(false)
  first()
  await third
  expect(inside).toBe(true)
})

test('whoever gave up is waited for by nobody', async () => {
  const turns = createTurns()
  const first = await turns.take('a', never, withStoreRetry)
  const impatient = new AbortController()
  const second = turns.take('a', impatient.signal, withStoreRetry)
  impatient.abort('stop')
  await expect(second).rejects.toBe('stop')
  first()
  await new Promise((resolve) => setImmediate(resolve))
  let told = false
  const leave = await turns.take('a', never, (wait) => {
    told = true
    return wait()
  })
  leave()
  expect(told).toBe(false)
})

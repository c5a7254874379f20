import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'

/** Each text takes milliseconds. With an expression that backtracks it takes minutes, or years. */
const limitMs = 10_000

/*
 * In a thread of its own, so that a text which takes for ever fails the test instead of stopping it.
 */
test('text of others takes time by its length, whatever it is made of', async () => {
  const worker = new Worker(new URL('./long-text-worker.ts', import.meta.url))
  const outcome = await new Promise((resolve) => {
    let timer: NodeJS.Timeout | undefined
    worker.on('message', (at: string) => {
      clearTimeout(timer)
      timer = setTimeout(() => resolve(`stuck at ${at}`), limitMs)
    })
    worker.on('error', resolve)
    worker.on('exit', () => {
      clearTimeout(timer)
      resolve('done')
    })
  })
  await worker.terminate()
  expect(outcome).toBe('done')
}, 300_000)

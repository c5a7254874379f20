import { Worker } from 'node:worker_threads'

/**
 * Watches from another thread whether this one still turns. A thread that waits in `open` for a FIFO's other end cannot
 * fail a test, nor be interrupted: the watcher opens the FIFO for it, and says that it had to.
 */
export type Heartbeat = {
  /** The FIFO that somebody may be waiting for now. */
  watch(fifo: string): void
  /** How often the thread had stopped. */
  stops(): number
  [Symbol.asyncDispose](): Promise<void>
}

/** A stop of this length is one for ever: what is watched takes milliseconds. */
const limitMs = 8_000

const watcher = `
const { workerData, parentPort } = require('node:worker_threads')
const fs = require('node:fs')
const shared = new Int32Array(workerData.shared)
let fifo, last = -1, since = Date.now()
parentPort.on('message', (path) => { fifo = path })
setInterval(() => {
  const beats = Atomics.load(shared, 0)
  if (beats !== last) { last = beats; since = Date.now(); return }
  if (Date.now() - since < ${limitMs}) return
  Atomics.add(shared, 1, 1)
  since = Date.now()
  try { fs.closeSync(fs.openSync(fifo, fs.constants.O_RDWR | fs.constants.O_NONBLOCK)) } catch {}
}, 100)
`

export const startHeartbeat = (): Heartbeat => {
  const shared = new SharedArrayBuffer(8)
  const numbers = new Int32Array(shared)
  const worker = new Worker(watcher, { eval: true, workerData: { shared } })
  const beat = setInterval(() => Atomics.add(numbers, 0, 1), 10)
  return {
    // eslint-disable-next-line unicorn/require-post-message-target-origin -- a worker of this process, not a window
    watch: (fifo) => worker.postMessage(fifo),
    stops: () => Atomics.load(numbers, 1),
    [Symbol.asyncDispose]: async () => {
      clearInterval(beat)
      await worker.terminate()
    },
  }
}

/** How many turns everything else gets while this runs: none, if it is synchronous inside. */
export const turnsDuring = async (work: () => Promise<unknown>): Promise<number> => {
  let turns = 0
  const count = (): void => {
    turns += 1
    again = setImmediate(count)
  }
  let again = setImmediate(count)
  try {
    await work()
  } finally {
    clearImmediate(again)
  }
  return turns
}

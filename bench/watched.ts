/** Loaded into a server with `--import`: tells, when asked, how many processes it has started and how much memory it has. */
import { subscribe } from 'node:diagnostics_channel'

export type Watched = { readonly processes: number; readonly residentMb: number }

let processes = 0
subscribe('child_process', () => {
  processes += 1
})
process.on('message', () => {
  // Twice: what only a finalizer held goes with the second.
  for (let i = 0; i < 2; i += 1) globalThis.gc?.()
  const watched: Watched = { processes, residentMb: process.memoryUsage.rss() / 2 ** 20 }
  process.send?.(watched)
})
// Being watched must not keep it alive.
process.channel?.unref()

/** Loaded into a server with `--import`: reports, on request, the processes it started and its memory. */
import { subscribe } from 'node:diagnostics_channel'
import { processChannels } from './process-channels.ts'

export type ProbeResult = { readonly processes: number; readonly residentMb: number }

let processes = 0
for (const name of processChannels) {
  subscribe(name, () => {
    processes += 1
  })
}
process.on('message', () => {
  // Twice: the second frees what a finalizer held.
  for (let i = 0; i < 2; i += 1) globalThis.gc?.()
  const result: ProbeResult = { processes, residentMb: process.memoryUsage.rss() / 2 ** 20 }
  process.send?.(result)
})
// The probe must not keep the process alive.
process.channel?.unref()

import { execFileSync } from 'node:child_process'
import { cpus, loadavg, release, tmpdir, totalmem, type } from 'node:os'

/** The machine measured on; figures mean little without it. */
export const describeMachine = (loadBefore: number): string[] => [
  `${cpus().length} cores (${cpus()[0]?.model.trim() ?? 'unknown'}), ${Math.round(totalmem() / 2 ** 30)} GB of memory`,
  `${type()} ${release()}, ${fileSystem()} under the temporary directory`,
  `${outputOf('git', '--version')}, Node ${process.version}`,
  `${new Date().toISOString().slice(0, 10)}, load average ${loadBefore.toFixed(1)} before and ${load().toFixed(1)} after${loadBefore > cpus().length / 2 ? ': **the machine was busy with other work**, so times are long and vary widely' : ''}`,
]

/** Over the last minute. */
export const load = (): number => loadavg()[0] ?? 0

const fileSystem = (): string => {
  if (process.platform !== 'linux') return 'file system unknown'
  return outputOf('stat', '--file-system', '--format=%T', tmpdir())
}

const outputOf = (command: string, ...args: string[]): string => {
  try {
    return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    return `${command} unknown`
  }
}

import { spawnSync } from 'node:child_process'
import type { ProcessReading } from './process-reading.ts'

/** macOS has no /proc: `ps` gives the start time to the second, the best available. */
export const readDarwinProcess = (pid: number): ProcessReading => {
  const ps = spawnSync('/bin/ps', ['-o', 'stat=,lstart=', '-p', String(pid)], {
    encoding: 'utf8',
    env: { LC_ALL: 'C', TZ: 'UTC' },
    timeout: 5_000,
  })
  if (ps.error !== undefined || ps.signal !== null) return { kind: 'cannot-tell' }
  return parsePsReading(ps.stdout, ps.stderr)
}

/** If the process doesn't exist, `ps` exits with 1 and prints nothing; output on stderr means another failure. */
export const parsePsReading = (stdout: string, stderr: string): ProcessReading => {
  const line = stdout.trim()
  if (line === '') return stderr.trim() === '' ? { kind: 'gone' } : { kind: 'cannot-tell' }
  const match = /^(\S+)\s+(\S.*)$/.exec(line)
  const [, state, started] = match ?? []
  if (state === undefined || started === undefined) return { kind: 'cannot-tell' }
  return { kind: 'there', startTime: started.replaceAll(/\s+/g, ' '), zombie: state.startsWith('Z') }
}

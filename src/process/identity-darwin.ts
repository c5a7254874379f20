import { spawnSync } from 'node:child_process'
import type { ProcessReading } from './process-reading.ts'

/** macOS has no /proc: `ps` tells the start date to the second, which with the pid is as exact as the system gets. */
export const readDarwinProcess = (pid: number): ProcessReading => {
  const ps = spawnSync('/bin/ps', ['-o', 'stat=,lstart=', '-p', String(pid)], {
    encoding: 'utf8',
    env: { LC_ALL: 'C', TZ: 'UTC' },
    timeout: 5_000,
  })
  if (ps.error !== undefined || ps.signal !== null) return { kind: 'cannot-tell' }
  return parsePsReading(ps.stdout, ps.stderr)
}

/** `ps` exits with 1 and prints nothing when there is no such process; anything on stderr means it failed otherwise. */
export const parsePsReading = (stdout: string, stderr: string): ProcessReading => {
  const line = stdout.trim()
  if (line === '') return stderr.trim() === '' ? { kind: 'gone' } : { kind: 'cannot-tell' }
  const match = /^(\S+)\s+(\S.*)$/.exec(line)
  const [, state, started] = match ?? []
  if (state === undefined || started === undefined) return { kind: 'cannot-tell' }
  return { kind: 'there', startTime: started.replaceAll(/\s+/g, ' '), zombie: state.startsWith('Z') }
}

import { AppError } from '../domain/errors.ts'
import type { Redact } from '../process/redaction/redact.ts'

/** How a git process failed. `signal` is set if it was killed. */
export type Ending = { readonly exitCode: number | null; readonly signal: string | null; readonly stderr: string }

/** For an exit code that the caller doesn't expect. */
export const gitFailure = (operation: string, ending: Ending, redact: Redact): AppError => {
  const { exitCode, signal } = ending
  const stderr = redact(ending.stderr)
  const said = meaningfulLine(stderr)
  const cause = { operation, exitCode, signal, stderr }
  if (/No space left on device/.test(stderr)) {
    return new AppError('disk-full', `git ${operation} failed: the disk is full`, {
      cause,
      remedy: 'free some space and try again',
    })
  }
  const how = signal === null ? `exit code ${exitCode}` : `killed by ${signal}`
  return new AppError('git-failed', `git ${operation} failed: ${said === '' ? how : said}`, { cause })
}

/** If git couldn't log in, why it had nothing to log in with comes first. */
export const withLoginProblem = (stderr: string, problem: string): string =>
  /could not read (?:Username|Password) for|Authentication failed for|The requested URL returned error: 40[13]/.test(
    stderr,
  )
    ? `fatal: ${problem}\n${stderr}`
    : stderr

/** The reason is in another line, such as `error: RPC failed; HTTP 401`. */
const saysWhyBefore = /^fatal: (?:Could not reset index file|the remote end hung up unexpectedly)/

/** The line after `fatal:` or `error:`, without the hints, warnings and progress around it. */
export const meaningfulLine = (stderr: string): string => {
  const lines = stderr
    .split(/[\r\n]+/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
  const line =
    lines.find((text) => text.startsWith('fatal:') && !saysWhyBefore.test(text)) ??
    lines.find((text) => text.startsWith('error:')) ??
    lines.find((text) => !/^(?:hint|warning|remote):|^Preparing worktree/.test(text)) ??
    lines[0] ??
    ''
  return line.replace(/^(?:fatal|error): */, '')
}

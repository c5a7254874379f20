import { AppError, type ErrorCode, isAppError, toAppError } from '../../domain/errors.ts'
import type { GateAnswer } from '../../domain/removal/gates.ts'
import { sentence, withFullStop } from '../../domain/words.ts'
import type { View } from './view.ts'

/** A refusal or a failure as programs read it. */
export type FailureJson = {
  readonly error: {
    readonly code: string
    readonly message: string
    readonly reasons: readonly GateAnswer[]
    readonly remedies: readonly string[]
  }
}

export const exitCodes = { done: 0, failed: 1, usage: 2, refused: 3, interrupted: 130 } as const

/** What is not simply "failed". A name that cannot be is wrong usage; what is held back for safety is a refusal. */
const special: Partial<Record<ErrorCode, number>> = {
  usage: exitCodes.usage,
  'name-invalid': exitCodes.usage,
  'codebase-in-use': exitCodes.refused,
  'isolation-blocked': exitCodes.refused,
  'path-outside-root': exitCodes.refused,
  cancelled: exitCodes.interrupted,
}

export const exitCodeOf = ({ code }: AppError): number => special[code] ?? exitCodes.failed

export const failureJson = ({ code, message, remedy }: AppError, redact: (text: string) => string): FailureJson => ({
  error: { code, message: redact(message), reasons: [], remedies: remedy === undefined ? [] : [redact(remedy)] },
})

/** One sentence of what happened and one of what to do; never a stack. */
export const failureText = (
  { code, message, remedy }: AppError,
  more = 'Run it again with --verbose for details, or run `coppice doctor`.',
): string => {
  // A message may begin with a name, which is written as it is.
  const what = withFullStop(message)
  if (remedy !== undefined) return `${what}\n${sentence(remedy)}`
  return code === 'unexpected' || code === 'git-failed' ? `${what}\n${more}` : what
}

/** An error knows nothing of how commands are said here; those in its remedy stand in backticks or after a colon. */
export const withWordsOf = (error: unknown, say: View['say']): unknown => {
  if (!isAppError(error) || error.remedy === undefined) return error
  const end = error.remedy.lastIndexOf('`') + 1
  const remedy =
    error.remedy.slice(0, end).replaceAll(/`coppice ([^`]+)`/g, (_all, text: string) => `\`${say(text)}\``) +
    error.remedy.slice(end).replace(/: coppice (.+)$/s, (_all, text: string) => `: ${say(text)}`)
  return remedy === error.remedy ? error : new AppError(error.code, error.message, { cause: error, remedy })
}

/** For --verbose: the whole chain of causes. */
export const failureDetails = (error: unknown): string => {
  const lines: string[] = []
  for (let current: unknown = error; current !== undefined && lines.length < 8;) {
    lines.push(current instanceof Error ? (current.stack ?? current.message) : JSON.stringify(current))
    current = current instanceof Error ? current.cause : undefined
  }
  return lines.join('\ncaused by: ')
}

/** What was thrown while the user was cancelling is the cancelling, whatever git called it. */
export const faultOf = (thrown: unknown, signal: AbortSignal): { fault: AppError; cancelled: boolean } => {
  const fault = toAppError(thrown)
  return { fault, cancelled: signal.aborted && ['cancelled', 'git-failed', 'timeout'].includes(fault.code) }
}

import { type AppError, type ErrorCode, toAppError } from '../../domain/errors.ts'
import { type Reason, reasonsOf } from '../../domain/reasoned-error.ts'
import { withFullStop } from '../../domain/text/words.ts'
import { describeNotice, leftAlone } from './notices.ts'
import { describeReason, type ReasonJson, reasonJson } from './reasons.ts'
import { describeRemedy, remedySentence } from './remedy.ts'
import type { View } from './view.ts'

/** A refusal or failure, for programs. */
export type FailureJson = {
  readonly error: {
    readonly code: string
    readonly message: string
    readonly reasons: readonly ReasonJson[]
    readonly remedies: readonly string[]
  }
}

export const exitCodes = { done: 0, failed: 1, usage: 2, refused: 3, interrupted: 130 } as const

/** Codes other than "failed". An invalid name is wrong usage; whatever isn't safe, or not in this state, is refused. */
const special: Partial<Record<ErrorCode, number>> = {
  usage: exitCodes.usage,
  'name-invalid': exitCodes.usage,
  refused: exitCodes.refused,
  'codebase-in-use': exitCodes.refused,
  'isolation-blocked': exitCodes.refused,
  'path-outside-root': exitCodes.refused,
  cancelled: exitCodes.interrupted,
}

export const exitCodeOf = ({ code }: AppError): number => special[code] ?? exitCodes.failed

export const failureJson = (
  error: AppError,
  view: Pick<View, 'commandText'>,
  redact: (text: string) => string,
): FailureJson => {
  const { code, remedy } = error
  const remedies = remedy === undefined ? [] : [redact(describeRemedy(remedy, view))]
  return { error: { code, message: redact(faultMessage(error, view)), reasons: faultReasons(error, redact), remedies } }
}

/** Only reasons given by a gate. */
export const faultReasons = (error: unknown, redact: (text: string) => string): ReasonJson[] =>
  reasonsOf(error).flatMap((reason) =>
    'gate' in reason ? [{ ...reasonJson(reason), detail: redact(describeReason(reason)) }] : [],
  )

/** The message with its reasons. */
export const faultMessage = (error: AppError, view: Pick<View, 'commandText' | 'chat'>): string => {
  const reasons = reasonsOf(error).map((reason) => inWords(reason, view))
  return reasons.length === 0 ? error.message : `${error.message}: ${[...new Set(reasons)].join(', ')}`
}

const inWords = (reason: Reason, view: Pick<View, 'commandText' | 'chat'>): string => {
  if ('gate' in reason) return describeReason(reason)
  return 'kind' in reason ? describeNotice(reason, view) : leftAlone(reason.left, view)
}

/** What happened and what to do, a sentence each; never a stack trace. */
export const failureText = (
  error: AppError,
  view: Pick<View, 'commandText' | 'chat'>,
  more = 'Run it again with --verbose for details, or run `coppice doctor`.',
): string => {
  // Not capitalised: a message may begin with a name.
  const { code, remedy } = error
  const what = withFullStop(faultMessage(error, view))
  if (remedy !== undefined) return `${what}\n${remedySentence(remedy, view)}`
  return code === 'unexpected' || code === 'git-failed' ? `${what}\n${more}` : what
}

/** For --verbose: the full chain of causes. */
export const failureDetails = (error: unknown): string => {
  const lines: string[] = []
  for (let current: unknown = error; current !== undefined && lines.length < 8;) {
    lines.push(current instanceof Error ? (current.stack ?? current.message) : JSON.stringify(current))
    current = current instanceof Error ? current.cause : undefined
  }
  return lines.join('\ncaused by: ')
}

/** Anything thrown after the user cancelled counts as the cancellation. */
export const faultOf = (thrown: unknown, signal: AbortSignal): { fault: AppError; cancelled: boolean } => {
  const fault = toAppError(thrown)
  return { fault, cancelled: signal.aborted && ['cancelled', 'git-failed', 'timeout'].includes(fault.code) }
}

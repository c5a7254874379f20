import { AppError, type AppErrorOptions, type ErrorCode } from './errors.ts'
import type { LeftAlone, Notice } from './notice.ts'
import type { GateAnswer } from './removal/gates.ts'

export type Reason = GateAnswer | Notice | { readonly left: LeftAlone }

/** A fault with reasons as values. The view appends them to the message, after a colon, in its own words. */
export class ReasonedError extends AppError {
  readonly reasons: readonly Reason[]

  constructor(code: ErrorCode, message: string, reasons: readonly Reason[], options: AppErrorOptions = {}) {
    super(code, message, options)
    this.name = 'ReasonedError'
    this.reasons = reasons
  }
}

export const reasonsOf = (error: unknown): readonly Reason[] => (error instanceof ReasonedError ? error.reasons : [])

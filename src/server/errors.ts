import type { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { HTTPException } from 'hono/http-exception'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { faultMessage, faultReasons } from '../commands/views/failure.ts'
import { asProgram } from '../commands/views/view.ts'
import { type ErrorCode, toAppError } from '../domain/errors.ts'
import type { Logger } from '../process/log.ts'
import type { Redact } from '../process/redaction/redact.ts'
import type { errorBody } from './schemas.ts'
import { describeRemedy } from '../commands/views/remedy.ts'

export type ErrorBody = z.infer<typeof errorBody>

/** Errors that only HTTP has: authentication, size and rate limits. */
export class HttpError extends Error {
  readonly status: ContentfulStatusCode
  readonly code: string
  readonly remedy: string | undefined
  readonly headers: Readonly<Record<string, string>>

  constructor(
    status: ContentfulStatusCode,
    code: string,
    message: string,
    { remedy, headers = {} }: { remedy?: string; headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(message)
    this.name = 'HttpError'
    this.status = status
    this.code = code
    this.remedy = remedy
    this.headers = headers
  }
}

/** Turns every failure into a code, a message and a remedy. Never a stack or an exception's own text. */
export const errorHandler =
  (log: Logger, redact: Redact) =>
  (error: unknown, c: Context): Response => {
    const { status, code, message, remedy, headers } = describe(error)
    if (status >= 500 && status !== 503)
      log.error('a request failed', { method: c.req.method, path: c.req.path, error })
    const remedies = remedy === undefined ? [] : [redact(remedy)]
    const body: ErrorBody = {
      error: { code, message: redact(message), reasons: faultReasons(error, redact), remedies },
    }
    return c.json(body, status, headers)
  }

type Described = Pick<HttpError, 'status' | 'code' | 'message' | 'remedy' | 'headers'>

const describe = (error: unknown): Described => {
  if (error instanceof HttpError) return error
  if (error instanceof HTTPException) return describeHono(error)
  const fault = toAppError(error)
  const { code, remedy } = fault
  const status = statuses[code] ?? 500
  // An error thrown by code that isn't ours may contain anything.
  if (code === 'unexpected' || code === 'store-failed') {
    return {
      status,
      code,
      message: 'internal error',
      remedy: 'see the server log',
      headers: {},
    }
  }
  return {
    status,
    code,
    message: faultMessage(fault, asProgram),
    remedy: remedy === undefined ? undefined : describeRemedy(remedy, asProgram),
    headers: code === 'busy' ? { 'Retry-After': '2' } : {},
  }
}

const describeHono = ({ status }: HTTPException): Described => {
  const headers = {}
  switch (status) {
    case 400:
      return { status, code: 'invalid', message: "the request body isn't valid JSON", remedy: undefined, headers }
    case 415:
      return { status, code: 'invalid', message: 'Content-Type must be application/json', remedy: undefined, headers }
    default:
      return { status, code: 'invalid', message: 'invalid request', remedy: undefined, headers }
  }
}

const statuses: Partial<Record<ErrorCode, ContentfulStatusCode>> = {
  usage: 400,
  'name-invalid': 400,
  'not-a-repository': 400,
  unsupported: 400,
  'not-found': 404,
  'pr-not-found': 404,
  'repository-gone': 409,
  'config-invalid': 409,
  'no-commits': 409,
  'path-outside-root': 409,
  'path-taken': 409,
  'branch-in-use': 409,
  'base-not-found': 409,
  'setup-failed': 409,
  'submodules-failed': 409,
  ambiguous: 409,
  'codebase-in-use': 409,
  'not-adoptable': 409,
  'restore-failed': 409,
  'illegal-transition': 409,
  refused: 409,
  'isolation-blocked': 409,
  'remote-unreachable': 502,
  busy: 503,
  'store-lost': 503,
  cancelled: 503,
  timeout: 504,
  'disk-full': 507,
}

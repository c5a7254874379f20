import type { Clock } from '../domain/clock.ts'

/** One check of the service or the configuration, and its result. */
export type Check = {
  readonly what: string
  readonly passed: boolean
  readonly detail: string
  readonly remedy: string | undefined
}

export type CheckParts = {
  readonly fetch: typeof fetch
  readonly clock: Clock
  readonly signal: AbortSignal
}

export type Ask = (what: string, request: Request, read: (answer: Response) => Verdict) => Promise<Check>
export type Request = {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly method?: 'GET' | 'POST'
}
export type Response = {
  readonly status: number
  readonly headers: Headers
  readonly body: Readonly<Record<string, unknown>>
  /** If the answer is a list: its records. */
  readonly list: readonly Readonly<Record<string, unknown>>[]
}
export type Verdict = { readonly passed: boolean; readonly detail: string; readonly remedy?: string }

const TIMEOUT_MS = 10_000

/** Without an SDK: one request each, and nothing is changed. */
export const createRequester =
  ({ fetch, signal }: CheckParts): Ask =>
  async (what, { url, headers = {}, method = 'GET' }, read) => {
    try {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)])
      const response = await fetch(url, { method, headers, signal: limit, redirect: 'error' })
      const answer: unknown = await response.json().catch(() => undefined)
      const list = Array.isArray(answer) ? answer.map(recordOf) : []
      return checked(what, read({ status: response.status, headers: response.headers, body: recordOf(answer), list }))
    } catch (error) {
      signal.throwIfAborted()
      return checked(what, {
        passed: false,
        detail: `couldn't connect: ${reasonOf(error)}`,
        remedy: 'check network access, then try again',
      })
    }
  }

export const checkAllowedUsers = (
  users: readonly string[],
  variable: string,
  shape: RegExp,
  example: string,
): Check => {
  const odd = users.find((user) => user !== '*' && !shape.test(user))
  if (users.length === 0) {
    return checked('allowed users', fail('none', `list user IDs: ${variable}=${example}`))
  }
  return checked(
    'allowed users',
    odd === undefined
      ? pass(users.includes('*') ? 'everybody' : users.join(', '))
      : fail(`"${odd.slice(0, 40)}" isn't a valid user ID`, `use IDs such as ${example}; names can change hands`),
  )
}

export const pass = (detail: string): Verdict => ({ passed: true, detail })
export const fail = (detail: string, remedy: string): Verdict => ({ passed: false, detail, remedy })
export const checked = (what: string, verdict: Verdict): Check => ({ what, remedy: undefined, ...verdict })
export const passed = (what: string, detail: string): Check => checked(what, pass(detail))
export const missing = (what: string, where: string): Check => checked(what, fail('missing', `set ${where}`))

export const recordOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}

export const textOf = (value: unknown): string =>
  typeof value === 'string' ? value.slice(0, 100) : 'unexpected response'

/** `fetch` errors say little; their cause says what happened. */
const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  if (error.name === 'TimeoutError') return `no response within ${TIMEOUT_MS / 1000} s`
  return error.cause instanceof Error ? error.cause.message || error.message : error.message
}

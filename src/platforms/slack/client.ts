import { type Logger as SlackLogger, LogLevel, webApi } from '@slack/bolt'
import { DeliveryError } from '../../conversations/outbox/delivery.ts'
import type { Logger } from '../../process/log.ts'
import { fieldsOf } from './message/record.ts'

export type SlackClient = webApi.WebClient

/** Slack responds in well under a second; a call that takes longer than this failed. */
const TIMEOUT_MS = 10_000

/**
 * Options for the SDK's calls. The SDK doesn't retry: the outbox does, durably and for as long as it takes, while the
 * SDK would sleep for half an hour with the reply in memory.
 */
export const clientOptions = (log: Logger, apiUrl: string | undefined): webApi.WebClientOptions => ({
  ...(apiUrl !== undefined && { slackApiUrl: `${apiUrl}/` }),
  retryConfig: { retries: 0 },
  rejectRateLimitedCalls: true,
  timeout: TIMEOUT_MS,
  logger: sdkLogger(log),
})

export const createSlackClient = (token: string, log: Logger, apiUrl: string | undefined): SlackClient =>
  new webApi.WebClient(token, clientOptions(log, apiUrl))

/** Sends the SDK's output to our log, which redacts it, never to the console. Its debug lines hold whole payloads. */
export const sdkLogger = (log: Logger): SlackLogger => {
  const to =
    (write: Logger['info']) =>
    (...parts: unknown[]): void =>
      write('Slack SDK message', { said: parts.map(String).join(' ').slice(0, 2_000) })
  return {
    debug: () => undefined,
    info: to(log.debug),
    warn: to(log.debug),
    error: to(log.warn),
    setLevel: () => undefined,
    getLevel: () => LogLevel.INFO,
    setName: () => undefined,
  }
}

/** Slack's error code; undefined if there was no response, or it wasn't from Slack. */
export const refusalOf = (error: unknown): string | undefined => {
  if (!(error instanceof webApi.WebAPIPlatformError)) return undefined
  const code: unknown = error.data.error
  // The SDK takes any page that isn't JSON for a refusal with the page as its code.
  return typeof code === 'string' && /^[a-z][a-z0-9_]{2,60}$/.test(code) ? code : undefined
}

/** Temporary problems at Slack. */
const temporary: ReadonlySet<string> = new Set([
  'internal_error',
  'fatal_error',
  'service_unavailable',
  'request_timeout',
  'ratelimited',
  'rate_limited',
  'message_limit_exceeded',
  'team_added_to_org',
])

/** Slack rejected our credentials, or they don't allow this. Replies wait until that is fixed. */
const unauthorised: ReadonlySet<string> = new Set([
  'access_denied',
  'account_inactive',
  'ekm_access_denied',
  'invalid_auth',
  'missing_scope',
  'no_permission',
  'not_allowed_token_type',
  'not_authed',
  'org_login_required',
  'team_access_not_granted',
  'token_expired',
  'token_revoked',
  'two_factor_setup_required',
])

/** How long to wait before trying the same credentials again. */
const UNAUTHORISED_MS = 60_000

/** Slack understood the request and said no, and will until something is changed. */
export const isRefusal = (error: unknown): boolean => {
  const refusal = refusalOf(error)
  return refusal !== undefined && !temporary.has(refusal)
}

/** The problem with our credentials, for `coppice platforms`; undefined: it is something else. */
export const credentialProblemOf = (error: unknown): string | undefined => {
  const refusal = refusalOf(error)
  if (refusal === undefined || !unauthorised.has(refusal)) return undefined
  const needed: unknown = error instanceof webApi.WebAPIPlatformError ? fieldsOf(error.data)['needed'] : undefined
  const scope = typeof needed === 'string' && /^[a-z.:,_-]{3,100}$/.test(needed) ? ` (${needed})` : ''
  return `Slack answered ${refusal}${scope}`
}

/** Whether and when to retry. */
export const toDeliveryError = (error: unknown): DeliveryError => {
  if (error instanceof DeliveryError) return error
  if (error instanceof webApi.WebAPIRateLimitedError) {
    const retryAfterMs = error.retryAfter * 1000
    return new DeliveryError('unreachable', "Slack's rate limit was reached", { cause: error, retryAfterMs })
  }
  const refusal = refusalOf(error)
  if (refusal === undefined) {
    return new DeliveryError('unreachable', `Slack could not be reached: ${reasonOf(error)}`, { cause: error })
  }
  const problem = credentialProblemOf(error)
  if (problem !== undefined) {
    return new DeliveryError('unreachable', problem, { cause: error, retryAfterMs: UNAUTHORISED_MS })
  }
  const kind = temporary.has(refusal) ? 'unreachable' : 'refused'
  return new DeliveryError(kind, `Slack answered ${refusal}`, { cause: error })
}

/** It may have succeeded: only the response was lost. */
export const mayHaveSucceeded = (error: unknown): boolean =>
  !(error instanceof webApi.WebAPIRateLimitedError) && !isRefusal(error)

const reasonOf = (error: unknown): string => {
  if (error instanceof webApi.WebAPIHTTPError) return `status ${error.statusCode}`
  if (error instanceof webApi.WebAPIRequestError) {
    const { cause } = error.original
    return cause instanceof Error ? cause.message : error.original.message
  }
  return error instanceof webApi.WebAPIPlatformError ? 'the response was not from Slack' : String(error).slice(0, 200)
}

import { type Logger as SlackLogger, LogLevel, webApi } from '@slack/bolt'
import { DeliveryError } from '../../conversations/outbox/delivery.ts'
import type { Logger } from '../../process/log.ts'

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
  const kind = temporary.has(refusal) ? 'unreachable' : 'refused'
  return new DeliveryError(kind, `Slack answered ${refusal}`, { cause: error })
}

/** It may have succeeded: only the response was lost. */
export const mayHaveSucceeded = (error: unknown): boolean =>
  !(error instanceof webApi.WebAPIRateLimitedError) &&
  (refusalOf(error) === undefined || temporary.has(refusalOf(error) ?? ''))

const reasonOf = (error: unknown): string => {
  if (error instanceof webApi.WebAPIHTTPError) return `status ${error.statusCode}`
  if (error instanceof webApi.WebAPIRequestError) {
    const { cause } = error.original
    return cause instanceof Error ? cause.message : error.original.message
  }
  return error instanceof webApi.WebAPIPlatformError ? 'the response was not from Slack' : String(error).slice(0, 200)
}

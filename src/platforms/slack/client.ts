import { type Logger as SlackLogger, LogLevel, webApi } from '@slack/bolt'
import { DeliveryError } from '../../conversations/outbox/delivery.ts'
import type { Logger } from '../../process/log.ts'

export type SlackClient = webApi.WebClient

/** Slack answers in well under a second; whatever takes longer than this did not arrive. */
const TIMEOUT_MS = 10_000

/**
 * What the SDK's own calls are made with. Nothing is retried there: the outbox is what tries again, durably and for as
 * long as it takes, and the SDK would sleep for half an hour with the reply in memory.
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

/** The SDK's words go to our own log, redacted there, never to the console. Its debug lines hold whole payloads. */
export const sdkLogger = (log: Logger): SlackLogger => {
  const to =
    (write: Logger['info']) =>
    (...said: unknown[]): void =>
      write('the Slack SDK says', { said: said.map(String).join(' ').slice(0, 2_000) })
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

/** What Slack said no with; undefined when it said nothing, or something else than Slack answered. */
export const refusalOf = (error: unknown): string | undefined => {
  if (!(error instanceof webApi.WebAPIPlatformError)) return undefined
  const said: unknown = error.data.error
  // The SDK takes any page that is no JSON for a refusal with the page as its name.
  return typeof said === 'string' && /^[a-z][a-z0-9_]{2,60}$/.test(said) ? said : undefined
}

/** Slack's own troubles, which pass. */
const passing: ReadonlySet<string> = new Set([
  'internal_error',
  'fatal_error',
  'service_unavailable',
  'request_timeout',
  'ratelimited',
  'rate_limited',
  'message_limit_exceeded',
  'team_added_to_org',
])

/** Whether trying again may help, and when. */
export const toDeliveryError = (error: unknown): DeliveryError => {
  if (error instanceof DeliveryError) return error
  if (error instanceof webApi.WebAPIRateLimitedError) {
    const retryAfterMs = error.retryAfter * 1000
    return new DeliveryError('unreachable', 'Slack asks us to slow down', { cause: error, retryAfterMs })
  }
  const refusal = refusalOf(error)
  if (refusal === undefined) {
    return new DeliveryError('unreachable', `Slack could not be reached: ${reasonOf(error)}`, { cause: error })
  }
  const kind = passing.has(refusal) ? 'unreachable' : 'refused'
  return new DeliveryError(kind, `Slack answered ${refusal}`, { cause: error })
}

/** It may have arrived all the same: the answer is what was lost. */
export const isUnclear = (error: unknown): boolean =>
  !(error instanceof webApi.WebAPIRateLimitedError) &&
  (refusalOf(error) === undefined || passing.has(refusalOf(error) ?? ''))

const reasonOf = (error: unknown): string => {
  if (error instanceof webApi.WebAPIHTTPError) return `status ${error.statusCode}`
  if (error instanceof webApi.WebAPIRequestError) {
    const { cause } = error.original
    return cause instanceof Error ? cause.message : error.original.message
  }
  return error instanceof webApi.WebAPIPlatformError ? 'the answer was not from Slack' : String(error).slice(0, 200)
}

import { RequestError } from 'octokit'
import { z } from 'zod'
import type { Clock } from '../../domain/clock.ts'
import { DeliveryError } from '../../conversations/outbox/delivery.ts'

/** `limited`: GitHub asks us to wait, and did nothing. `away`: it may have done what we asked. */
export type Failure = {
  readonly kind: 'limited' | 'away' | 'unauthorized' | 'missing' | 'refused'
  readonly message: string
  readonly retryAfterMs?: number
}

/** Interprets GitHub's response, or the lack of one. */
export const failureOf = (error: unknown, clock: Clock): Failure => {
  const answered = graphqlErrorOf(error)
  if (answered !== undefined) return refusalOf(answered, clock)
  if (error instanceof z.ZodError) return { kind: 'refused', message: "GitHub's answer isn't what was asked for" }
  const message = error instanceof Error ? error.message : String(error)
  if (!(error instanceof RequestError) || error.response === undefined) return { kind: 'away', message }
  const { status } = error
  if (status === 429 || (status === 403 && isRateLimit(error))) {
    return { kind: 'limited', message, retryAfterMs: pauseOf(error.response.headers, clock) }
  }
  if (status >= 500 || status === 408) return { kind: 'away', message }
  if (status === 401) return { kind: 'unauthorized', message }
  return { kind: status === 404 || status === 410 ? 'missing' : 'refused', message }
}

/** What the SDK throws for a GraphQL answer with errors; it doesn't export the class. */
const graphqlError = z.object({
  name: z.literal('GraphqlResponseError'),
  data: z.unknown(),
  errors: z
    .array(z.object({ type: z.string().optional(), message: z.string(), path: z.array(z.unknown()).optional() }))
    .min(1),
  headers: z.record(z.string(), z.unknown()),
})

export const graphqlErrorOf = (error: unknown): z.infer<typeof graphqlError> | undefined =>
  graphqlError.safeParse(error).data

/** GitHub reports a rate limit of the GraphQL API with status 200. */
const refusalOf = ({ errors, headers }: z.infer<typeof graphqlError>, clock: Clock): Failure => {
  const message = errors[0]?.message ?? ''
  return errors.some(({ type }) => type === 'RATE_LIMITED')
    ? { kind: 'limited', message, retryAfterMs: pauseOf({ ...headers, 'x-ratelimit-remaining': '0' }, clock) }
    : { kind: 'refused', message }
}

/** After a token is revoked, replies wait until somebody replaces it. */
export const toDeliveryError = (error: unknown, clock: Clock): DeliveryError => {
  if (error instanceof DeliveryError) return error
  const { kind, message, retryAfterMs } = failureOf(error, clock)
  const isFinal = kind === 'refused' || kind === 'missing'
  return new DeliveryError(isFinal ? 'refused' : 'unreachable', message, {
    cause: error,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(kind === 'unauthorized' && { retryAfterMs: 60_000 }),
  })
}

/** 403 is also the status for locked threads and missing permissions. */
const isRateLimit = ({ response, message }: RequestError): boolean =>
  response?.headers['retry-after'] !== undefined ||
  response?.headers['x-ratelimit-remaining'] === '0' ||
  /rate limit|abuse detection/i.test(message)

const MAX_PAUSE_MS = 3_600_000
/** GitHub asks for at least a minute if it doesn't say how long. */
const DEFAULT_PAUSE_MS = 60_000

const pauseOf = (headers: Readonly<Record<string, unknown>>, clock: Clock): number => {
  const asked = Number(headers['retry-after'])
  if (headers['retry-after'] !== undefined && Number.isFinite(asked)) {
    return Math.min(MAX_PAUSE_MS, Math.max(0, asked * 1_000))
  }
  const reset = Number(headers['x-ratelimit-reset'])
  if (headers['x-ratelimit-remaining'] === '0' && Number.isFinite(reset) && reset > 0) {
    return Math.min(MAX_PAUSE_MS, Math.max(1_000, reset * 1_000 - clock()))
  }
  return DEFAULT_PAUSE_MS
}

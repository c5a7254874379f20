import { DiscordAPIError, RateLimitError } from 'discord.js'
import { DeliveryError } from '../../conversations/outbox/delivery.ts'

/** Discord's error codes that we handle. */
export const errorCodes = {
  unknownChannel: 10_003,
  unknownMessage: 10_008,
  missingAccess: 50_001,
  missingPermissions: 50_013,
  threadExists: 160_004,
} as const

export const hasErrorCode = (error: unknown, code: number): boolean =>
  error instanceof DiscordAPIError && error.code === code

/** Temporary: slow mode, rate limits, an overloaded part of Discord. */
const temporary: readonly (number | string)[] = [20_016, 20_022, 20_028, 40_062, 40_333, 110_000, 130_000]

/**
 * Tells a refusal from an unreachable service. A refusal is one of Discord's codes (10,000 and up) with a 4xx status:
 * unknown channel 10003, no access 50001, no permission 50013, an invalid form 50035. A page from a proxy isn't
 * Discord's response, and a token can be fixed: both are retried.
 */
export const deliveryError = (error: unknown): DeliveryError => {
  if (error instanceof DeliveryError) return error
  if (error instanceof RateLimitError) {
    const retryAfterMs = Math.max(error.retryAfter, error.timeToReset)
    return new DeliveryError('unreachable', "Discord's rate limit was reached", { cause: error, retryAfterMs })
  }
  if (error instanceof DiscordAPIError) {
    const { code, status, message } = error
    const isRefusal = typeof code === 'number' && code >= 10_000 && status >= 400 && status < 500 && status !== 401
    if (isRefusal && status !== 408 && status !== 429 && !temporary.includes(code)) {
      return new DeliveryError('refused', `Discord refused: ${message} (${code})`, { cause: error })
    }
    return new DeliveryError('unreachable', `Discord is temporarily unavailable: ${message} (${status})`, {
      cause: error,
    })
  }
  const what = error instanceof Error ? error.message : String(error)
  return new DeliveryError('unreachable', `Discord could not be reached: ${what}`, { cause: error })
}

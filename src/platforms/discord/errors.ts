import { DiscordAPIError, RateLimitError } from 'discord.js'
import { DeliveryError } from '../../conversations/outbox/delivery.ts'

/** Discord's own answers by number, those that are acted upon. */
export const answers = {
  unknownChannel: 10_003,
  unknownMessage: 10_008,
  threadExists: 160_004,
} as const

export const isAnswer = (error: unknown, code: number): boolean =>
  error instanceof DiscordAPIError && error.code === code

/** Numbers that mean *not now*: slow mode, limits, a part of Discord that is overloaded. */
const notNow: readonly (number | string)[] = [20_016, 20_022, 20_028, 40_062, 40_333, 110_000, 130_000]

/**
 * The service said no, or it was never reached. No is a number of Discord's own (from 10,000 on) with a status 4xx:
 * unknown channel 10003, no access 50001, no permission 50013, a form it does not take 50035. A page of whatever stands
 * in front of it is no answer of its own, and a token can be set right: both are tried again.
 */
export const deliveryError = (error: unknown): DeliveryError => {
  if (error instanceof DeliveryError) return error
  if (error instanceof RateLimitError) {
    const retryAfterMs = Math.max(error.retryAfter, error.timeToReset)
    return new DeliveryError('unreachable', 'Discord asks for a pause', { cause: error, retryAfterMs })
  }
  if (error instanceof DiscordAPIError) {
    const { code, status, message } = error
    const isNo = typeof code === 'number' && code >= 10_000 && status >= 400 && status < 500 && status !== 401
    if (isNo && status !== 408 && status !== 429 && !notNow.includes(code)) {
      return new DeliveryError('refused', `Discord refuses: ${message} (${code})`, { cause: error })
    }
    return new DeliveryError('unreachable', `Discord does not take it now: ${message} (${status})`, { cause: error })
  }
  const what = error instanceof Error ? error.message : String(error)
  return new DeliveryError('unreachable', `Discord was not reached: ${what}`, { cause: error })
}

// The web build uses Node's `fetch`; the other one brings its own HTTP client.
import { Api, GrammyError, HttpError } from 'grammy/web'
import { DeliveryError } from '../../conversations/outbox/delivery.ts'

export type TelegramApi = Api

/** The SDK doesn't retry: the outbox does, durably and for as long as it takes. */
export const createTelegramApi = (token: string, apiUrl: string | undefined, timeoutMs: number): TelegramApi =>
  new Api(token, { ...(apiUrl !== undefined && { apiRoot: apiUrl }), timeoutSeconds: timeoutMs / 1000 })

/** The SDK's types name another package's signal, which it replaces by Node's own. */
export const signalFor = (signal: AbortSignal): NonNullable<Parameters<TelegramApi['getMe']>[0]> =>
  signal as unknown as NonNullable<Parameters<TelegramApi['getMe']>[0]>

/** Telegram's error; undefined if there was no response, or it wasn't from Telegram. */
export const refusalOf = (error: unknown): { readonly code: number; readonly description: string } | undefined =>
  error instanceof GrammyError ? { code: error.error_code, description: error.description } : undefined

/** Telegram rejected the text, not the request. */
export const isFormattingError = (error: unknown): boolean =>
  isRefusedFor(error, /parse entities|entit(?:y|ies)|message is too long|message text is empty/i)

/** The message already has this text. */
export const isUnchanged = (error: unknown): boolean => isRefusedFor(error, /message is not modified/i)

/** A group that became a supergroup has a new id. */
export const movedTo = (error: unknown): number | undefined =>
  error instanceof GrammyError ? error.parameters.migrate_to_chat_id : undefined

/**
 * Whether and when to retry. 401 and 404 are about the token, which can be fixed; 409 means that another process polls
 * with it.
 */
export const toDeliveryError = (error: unknown): DeliveryError => {
  if (error instanceof DeliveryError) return error
  if (!(error instanceof GrammyError)) {
    return new DeliveryError('unreachable', `Telegram could not be reached: ${reasonOf(error)}`, { cause: error })
  }
  const { error_code: code, description, parameters } = error
  const seconds = parameters.retry_after
  const kind = code === 400 || code === 403 ? 'refused' : 'unreachable'
  const retryAfterMs = seconds === undefined ? undefined : seconds * 1000
  return new DeliveryError(retryAfterMs === undefined ? kind : 'unreachable', `Telegram answered: ${description}`, {
    cause: error,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  })
}

const isRefusedFor = (error: unknown, words: RegExp): boolean => {
  const refusal = refusalOf(error)
  return refusal?.code === 400 && words.test(refusal.description)
}

/** `fetch` errors say little; their cause says what happened. */
const reasonOf = (error: unknown): string => {
  const inner = error instanceof HttpError ? error.error : error
  if (!(inner instanceof Error)) return String(inner).slice(0, 200)
  if (inner instanceof SyntaxError) return 'the response was not from Telegram'
  return inner.cause instanceof Error ? inner.cause.message || inner.message : inner.message
}

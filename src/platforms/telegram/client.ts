// The build for the web: it uses the `fetch` that Node has, the other one brings an HTTP client of its own.
import { Api, GrammyError, HttpError } from 'grammy/web'
import { DeliveryError } from '../../conversations/outbox/delivery.ts'

export type TelegramApi = Api

/** Nothing is retried in here: the outbox is what tries again, durably and for as long as it takes. */
export const createTelegramApi = (token: string, apiUrl: string | undefined, timeoutMs: number): TelegramApi =>
  new Api(token, { ...(apiUrl !== undefined && { apiRoot: apiUrl }), timeoutSeconds: timeoutMs / 1000 })

/** The SDK's types name the signal of a package that it replaces by Node's own. */
export const signalFor = (signal: AbortSignal): NonNullable<Parameters<TelegramApi['getMe']>[0]> =>
  signal as unknown as NonNullable<Parameters<TelegramApi['getMe']>[0]>

/** What Telegram said no with; undefined when it said nothing, or something else than Telegram answered. */
export const refusalOf = (error: unknown): { readonly code: number; readonly said: string } | undefined =>
  error instanceof GrammyError ? { code: error.error_code, said: error.description } : undefined

/** The text, not the request, is what Telegram did not take. */
export const isUnreadable = (error: unknown): boolean =>
  isNo(error, /parse entities|entit(?:y|ies)|message is too long|message text is empty/i)

/** It says that already. */
export const isUnchanged = (error: unknown): boolean => isNo(error, /message is not modified/i)

/** A group that became a supergroup has another id from then on. */
export const movedTo = (error: unknown): number | undefined =>
  error instanceof GrammyError ? error.parameters.migrate_to_chat_id : undefined

/**
 * Whether trying again may help, and when. 401 and 404 are about the token, which can be set right; 409 is another
 * process that asks with it.
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

const isNo = (error: unknown, words: RegExp): boolean => {
  const refusal = refusalOf(error)
  return refusal?.code === 400 && words.test(refusal.said)
}

/** What `fetch` throws says little; the cause says what happened. */
const reasonOf = (error: unknown): string => {
  const inner = error instanceof HttpError ? error.error : error
  if (!(inner instanceof Error)) return String(inner).slice(0, 200)
  if (inner instanceof SyntaxError) return 'the answer was not from Telegram'
  return inner.cause instanceof Error ? inner.cause.message || inner.message : inner.message
}

import { createHash, timingSafeEqual } from 'node:crypto'
import type { WebhookAnswer, WebhookRequest } from '../platform.ts'

/** Telegram signs nothing: it repeats the secret that we gave it. Looked at before anything is read from the body. */
export const answerWebhook = async (
  { headers, body }: WebhookRequest,
  secret: string,
  onUpdate: (update: unknown) => Promise<void>,
  warn: (message: string, fields: Readonly<Record<string, unknown>>) => void,
): Promise<WebhookAnswer> => {
  if (!isSame(headers['x-telegram-bot-api-secret-token'] ?? '', secret)) {
    warn('a webhook was refused', { problem: 'wrong secret' })
    return { status: 401, body: 'the secret does not fit' }
  }
  try {
    await onUpdate(jsonOf(body))
    return { status: 200 }
  } catch (error) {
    // Telegram brings it again.
    warn('an update of Telegram was not taken', { error })
    return { status: 503, body: 'not taken' }
  }
}

/** Digests have one length, so that nothing is learnt from how long the comparison takes. */
const isSame = (given: string, secret: string): boolean => timingSafeEqual(digest(given), digest(secret))

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

const jsonOf = (bytes: Uint8Array): unknown => {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8')) as unknown
  } catch {
    return undefined
  }
}

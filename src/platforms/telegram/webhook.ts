import { createHash, timingSafeEqual } from 'node:crypto'
import type { WebhookAnswer, WebhookRequest } from '../platform.ts'

/** Telegram doesn't sign: it repeats our secret, which is checked before the body is read. */
export const answerWebhook = async (
  { headers, body }: WebhookRequest,
  secret: string,
  onUpdate: (update: unknown) => Promise<void>,
  warn: (message: string, fields: Readonly<Record<string, unknown>>) => void,
): Promise<WebhookAnswer> => {
  if (!isSame(headers['x-telegram-bot-api-secret-token'] ?? '', secret)) {
    warn('a webhook was refused', { problem: 'wrong secret' })
    return { status: 401, body: 'the secret is missing or wrong' }
  }
  try {
    await onUpdate(jsonOf(body))
    return { status: 200 }
  } catch (error) {
    // Telegram will resend it.
    warn('a Telegram update was not accepted', { error })
    return { status: 503, body: 'not accepting messages right now' }
  }
}

/** Digests have equal length, so the comparison's duration reveals nothing. */
const isSame = (given: string, secret: string): boolean => timingSafeEqual(digest(given), digest(secret))

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

const jsonOf = (bytes: Uint8Array): unknown => {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8')) as unknown
  } catch {
    return undefined
  }
}

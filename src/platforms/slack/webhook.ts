import type { WebhookAnswer, WebhookRequest } from '../platform.ts'
import { checkSignature } from './signature.ts'

/** Verifies the raw bytes before reading anything from them; acknowledges once the event is durable. */
export const answerWebhook = async (
  request: WebhookRequest,
  secret: string,
  now: number,
  onEvent: (body: unknown, retry: number | undefined) => Promise<void>,
  warn: (message: string, fields: Readonly<Record<string, unknown>>) => void,
): Promise<WebhookAnswer> => {
  const problem = checkSignature(request, secret, now)
  if (problem !== undefined) {
    warn('a webhook was refused', { problem })
    return { status: 401, body: 'the signature is missing or wrong' }
  }
  const body = jsonOf(request.body)
  if (body?.['type'] === 'url_verification') {
    return { status: 200, body: typeof body['challenge'] === 'string' ? body['challenge'] : '' }
  }
  // Slash commands and buttons arrive as a form. We have none, so there is nothing to do.
  if (body === undefined) return { status: 200 }
  try {
    const retry = request.headers['x-slack-retry-num']
    await onEvent(body, retry === undefined ? undefined : Number(retry))
    return { status: 200 }
  } catch (error) {
    warn('a Slack event was not accepted', { error })
    return { status: 503, body: 'not accepting messages right now' }
  }
}

const jsonOf = (bytes: Uint8Array): Readonly<Record<string, unknown>> | undefined => {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString('utf8'))
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

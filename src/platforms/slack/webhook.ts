import type { WebhookAnswer, WebhookRequest } from '../platform.ts'
import { checkSignature } from './signature.ts'

/** Verified over the raw bytes before anything is read from them; acknowledged when what it brought is durable. */
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
    return { status: 401, body: 'the signature does not fit' }
  }
  const body = jsonOf(request.body)
  if (body?.['type'] === 'url_verification') {
    return { status: 200, body: typeof body['challenge'] === 'string' ? body['challenge'] : '' }
  }
  // Slash commands and buttons come as a form. There are none of ours, so there is nothing to do.
  if (body === undefined) return { status: 200 }
  try {
    const retry = request.headers['x-slack-retry-num']
    await onEvent(body, retry === undefined ? undefined : Number(retry))
    return { status: 200 }
  } catch (error) {
    warn('an event of Slack was not taken', { error })
    return { status: 503, body: 'not taken' }
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

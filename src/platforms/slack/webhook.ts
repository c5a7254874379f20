import type { WebhookAnswer, WebhookRequest } from '../platform.ts'
import type { SlackAnswer, SlackDelivery } from './delivery.ts'
import { type Fields, fieldsOf } from './message/record.ts'
import { checkSignature } from './signature.ts'

/** Verifies the raw bytes before reading anything from them; acknowledges once the content is durable. */
export const answerWebhook = async (
  request: WebhookRequest,
  secret: string,
  now: number,
  onDelivery: (delivery: SlackDelivery) => Promise<SlackAnswer>,
  warn: (message: string, fields: Readonly<Record<string, unknown>>) => void,
): Promise<WebhookAnswer> => {
  const problem = checkSignature(request, secret, now)
  if (problem !== undefined) {
    warn('a webhook was refused', { problem })
    return { status: 401, body: 'the signature is missing or wrong' }
  }
  const text = Buffer.from(request.body).toString('utf8')
  const json = jsonOf(text)
  if (json?.['type'] === 'url_verification') {
    return { status: 200, body: typeof json['challenge'] === 'string' ? json['challenge'] : '' }
  }
  const content = json === undefined ? formOf(text) : ({ kind: 'event', body: json } as const)
  if (content === undefined) return { status: 200 }
  try {
    const retry = request.headers['x-slack-retry-num']
    const answer = await onDelivery({ ...content, retry: retry === undefined ? undefined : Number(retry) })
    return answer === undefined
      ? { status: 200 }
      : { status: 200, body: JSON.stringify(answer), headers: { 'content-type': 'application/json' } }
  } catch (error) {
    warn('a Slack delivery was not accepted', { kind: content.kind, error })
    return { status: 503, body: 'not accepting messages right now' }
  }
}

/** Buttons post a form whose only field is JSON; a slash command is a form itself. Slack's TLS probe is neither. */
const formOf = (text: string): Pick<SlackDelivery, 'kind' | 'body'> | undefined => {
  const form = new URLSearchParams(text)
  const payload = form.get('payload')
  if (payload !== null) return { kind: 'interaction', body: jsonOf(payload) }
  return form.has('command') ? { kind: 'command', body: Object.fromEntries(form) } : undefined
}

const jsonOf = (text: string): Fields | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? fieldsOf(value) : undefined
  } catch {
    return undefined
  }
}

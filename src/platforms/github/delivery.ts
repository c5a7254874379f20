import type { Webhooks } from '@octokit/webhooks'
import type { WebhookAnswer, WebhookRequest } from '../platform.ts'
import { eventOf, payloads } from './payloads.ts'

export type VerifiedDelivery = { readonly event: string; readonly id: string; readonly payload: object }

/** Reads nothing from a body before its signature is verified. */
export const readDelivery = async (
  webhooks: Pick<Webhooks, 'verify'>,
  { headers, body }: WebhookRequest,
): Promise<VerifiedDelivery | WebhookAnswer> => {
  const text = exactText(body)
  const signature = headers['x-hub-signature-256']
  // The library throws on empty values; otherwise it compares in constant time.
  if (text === undefined || text === '' || signature === undefined || signature === '') return unsigned
  if (!(await webhooks.verify(text, signature))) return unsigned
  const event = headers['x-github-event']
  const id = headers['x-github-delivery']
  if (event === undefined || id === undefined || !/^[\w-]{1,100}$/.test(id)) {
    return { status: 400, body: 'X-GitHub-Event or X-GitHub-Delivery is missing' }
  }
  const payload = payloadOf(text)
  if (payload === undefined) return { status: 400, body: 'the body must be a JSON object' }
  if (Object.hasOwn(payloads, event) && eventOf(payload) !== event) {
    return { status: 400, body: 'X-GitHub-Event does not match the payload' }
  }
  return { event, id, payload }
}

const unsigned: WebhookAnswer = { status: 401, body: 'the signature is missing or wrong' }

/**
 * The library verifies a string, so it must encode to exactly these bytes: broken UTF-8 is refused and a byte order
 * mark is kept.
 */
const exactText = (body: Uint8Array): string | undefined => {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body)
  } catch {
    return undefined
  }
}

/**
 * JSON, or GitHub's default for a new webhook: a form with one field, `payload`. The first bytes decide, because the
 * Content-Type isn't signed: read as a form, a comment could contain its own `&payload=`.
 */
const payloadOf = (text: string): object | undefined => {
  const isForm = /^payload=[^&]*$/.test(text)
  const json = isForm ? new URLSearchParams(text).get('payload') : text
  if (json?.startsWith('{') !== true) return undefined
  try {
    return JSON.parse(json) as object
  } catch {
    return undefined
  }
}

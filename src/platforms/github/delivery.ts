import type { Webhooks } from '@octokit/webhooks'
import type { WebhookAnswer, WebhookRequest } from '../platform.ts'
import { eventOf, payloads } from './payloads.ts'

export type VerifiedDelivery = { readonly event: string; readonly id: string; readonly payload: object }

/** Nothing is read from a body before its signature has been found right. */
export const readDelivery = async (
  webhooks: Pick<Webhooks, 'verify'>,
  { headers, body }: WebhookRequest,
): Promise<VerifiedDelivery | WebhookAnswer> => {
  const text = exactText(body)
  const signature = headers['x-hub-signature-256']
  // The library throws at what is empty, and compares in constant time otherwise.
  if (text === undefined || text === '' || signature === undefined || signature === '') return unsigned
  if (!(await webhooks.verify(text, signature))) return unsigned
  const event = headers['x-github-event']
  const id = headers['x-github-delivery']
  if (event === undefined || id === undefined || !/^[\w-]{1,100}$/.test(id)) {
    return { status: 400, body: 'X-GitHub-Event and X-GitHub-Delivery are missing' }
  }
  const payload = payloadOf(text)
  if (payload === undefined) return { status: 400, body: 'the body is not a JSON object' }
  if (Object.hasOwn(payloads, event) && eventOf(payload) !== event) {
    return { status: 400, body: 'X-GitHub-Event does not match the payload' }
  }
  return { event, id, payload }
}

const unsigned: WebhookAnswer = { status: 401, body: 'the signature is missing or wrong' }

/**
 * The library verifies a text. Only a text that gives exactly these bytes again will do, so broken UTF-8 is refused and
 * a byte order mark is kept.
 */
const exactText = (body: Uint8Array): string | undefined => {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body)
  } catch {
    return undefined
  }
}

/**
 * JSON, or GitHub's default for a new webhook: a form with the one field `payload`. The first bytes decide, because the
 * Content-Type is not signed: read as a form, somebody's comment could hold a `&payload=` of its own.
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

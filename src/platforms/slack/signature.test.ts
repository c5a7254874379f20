import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { checkSignature, TOLERANCE_SECONDS } from './signature.ts'

const secret = 'signing-secret'
const now = 1_712_345_678_000
const body = Buffer.from('{"type":"event_callback","text":"ü\u0000"}')

const signed = (
  over: { body?: Uint8Array; at?: number; secret?: string; headers?: Record<string, string> } = {},
): Parameters<typeof checkSignature>[0] => {
  const timestamp = String(Math.floor((over.at ?? now) / 1000))
  const mac = createHmac('sha256', over.secret ?? secret)
    .update(`v0:${timestamp}:`)
    .update(body)
    .digest('hex')
  const headers = { 'x-slack-request-timestamp': timestamp, 'x-slack-signature': `v0=${mac}`, ...over.headers }
  return { headers, body: over.body ?? body }
}

test('what Slack signed just now is taken, byte by byte', () => {
  expect(checkSignature(signed(), secret, now)).toBeUndefined()
  expect(checkSignature(signed({ at: now - (TOLERANCE_SECONDS - 1) * 1000 }), secret, now)).toBeUndefined()
})

test.each([
  ['another secret', signed({ secret: 'guess' })],
  ['another body', signed({ body: Buffer.from('{}') })],
  ['a body with one byte more', signed({ body: Buffer.concat([body, Buffer.from(' ')]) })],
  ['a recording', signed({ at: now - (TOLERANCE_SECONDS + 1) * 1000 })],
  ['a message from the future', signed({ at: now + (TOLERANCE_SECONDS + 2) * 1000 })],
  ['another time under the signature', signed({ headers: { 'x-slack-request-timestamp': String(now / 1000 - 1) } })],
  ['no time', signed({ headers: { 'x-slack-request-timestamp': '' } })],
  ['a time that is none', signed({ headers: { 'x-slack-request-timestamp': 'NaN' } })],
  ['no signature', signed({ headers: { 'x-slack-signature': '' } })],
  ['a truncated signature', signed({ headers: { 'x-slack-signature': 'v0=abcdef' } })],
  ['a version that is not known', signed({ headers: { 'x-slack-signature': `v1=${'0'.repeat(64)}` } })],
  ['zeros', signed({ headers: { 'x-slack-signature': `v0=${'0'.repeat(64)}` } })],
])('%s is refused', (_what, request) => {
  expect(checkSignature(request, secret, now)).toBeDefined()
})

import { createHmac, timingSafeEqual } from 'node:crypto'

/** Slack's own tolerance: anything older may be a replay. */
export const TOLERANCE_SECONDS = 300

export type Signed = {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** Verifies that Slack just sent these bytes. Returns the problem, for the log only: the sender learns nothing. */
export const checkSignature = ({ headers, body }: Signed, secret: string, now: number): string | undefined => {
  const timestamp = headers['x-slack-request-timestamp'] ?? ''
  const signature = headers['x-slack-signature'] ?? ''
  if (!/^\d{1,12}$/.test(timestamp)) return 'no timestamp'
  if (!/^v0=[0-9a-f]{64}$/.test(signature)) return 'no signature'
  if (Math.abs(now / 1000 - Number(timestamp)) > TOLERANCE_SECONDS) return 'too old, or from the future'
  const expected = createHmac('sha256', secret).update(`v0:${timestamp}:`).update(body).digest()
  return timingSafeEqual(expected, Buffer.from(signature.slice(3), 'hex')) ? undefined : 'wrong signature'
}

import { createHmac } from 'node:crypto'
import type { Attempted, HookPayload } from './hook.ts'

export type Webhook = {
  readonly url: string
  readonly secret: string | undefined
  readonly timeoutMs: number
  readonly signal: AbortSignal
  readonly json: HookPayload
}

/** What went wrong is told without the URL, which may contain a secret. */
export const postWebhook = async ({ url, secret, timeoutMs, signal, json }: Webhook): Promise<Attempted> => {
  const body = JSON.stringify(json)
  const timeout = AbortSignal.timeout(timeoutMs)
  try {
    const response = await fetch(url, {
      method: 'POST',
      // It might lead into the local network.
      redirect: 'manual',
      headers: {
        'content-type': 'application/json',
        'user-agent': 'coppice',
        'x-coppice-event': json.kind,
        // Stays the same if it is delivered again.
        'x-coppice-delivery': String(json.number),
        ...(secret !== undefined && { 'x-coppice-signature-256': signatureOf(body, secret) }),
      },
      body,
      signal: AbortSignal.any([signal, timeout]),
    })
    // Whatever it answers isn't read.
    await response.body?.cancel()
    if (response.ok) return { kind: 'delivered' }
    const isRedirect = response.status >= 300 && response.status < 400
    return {
      kind: 'failed',
      why: `it returned status ${response.status}${isRedirect ? ', a redirect, which is not followed' : ''}`,
    }
  } catch (error) {
    if (signal.aborted) return { kind: 'aborted' }
    if (timeout.aborted) return { kind: 'failed', why: `it took longer than ${timeoutMs / 1000} s` }
    return { kind: 'failed', why: `it couldn't be reached${codeOf(error)}` }
  }
}

const signatureOf = (body: string, secret: string): string =>
  `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`

/** ` (ECONNREFUSED)` */
const codeOf = (error: unknown): string => {
  const cause: unknown = error instanceof Error ? error.cause : undefined
  const code = typeof cause === 'object' && cause !== null && 'code' in cause ? cause.code : undefined
  return typeof code === 'string' ? ` (${code})` : ''
}

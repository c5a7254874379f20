import type { MiddlewareHandler } from 'hono'
import type { Secrets } from '../process/redaction/redact.ts'
import type { ServerEnv } from './server-env.ts'
import { isWebhook } from './webhooks.ts'

/**
 * Redacts every response: a branch may be named after a secret, and so may a codebase, which is a metrics label.
 * Event streams are redacted event by event.
 */
export const redactResponses =
  ({ redactKnown }: Pick<Secrets, 'redactKnown'>): MiddlewareHandler<ServerEnv> =>
  async (c, next) => {
    await next()
    // An accepted message's response has only ids, thousands of times a second; a webhook's response is the platform's.
    if (c.res.status === 202 || isWebhook(c.req.path)) return
    if (!/^(?:application\/json|text\/plain)\b/.test(c.res.headers.get('content-type') ?? '')) return
    const text = await c.res.text()
    const shown = redactKnown(text)
    c.res = new Response(shown, c.res)
    if (shown !== text) c.res.headers.delete('content-length')
  }

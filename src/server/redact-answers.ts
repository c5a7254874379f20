import type { MiddlewareHandler } from 'hono'
import type { Secrets } from '../process/redaction/redact.ts'
import type { ServerEnv } from './server-env.ts'
import { isWebhook } from './webhooks.ts'

/**
 * Whatever a route answers with: a branch may be named after a secret, and so may a codebase, which is a label of the
 * metrics. Event streams hide theirs event by event.
 */
export const redactAnswers =
  ({ redactKnown }: Pick<Secrets, 'redactKnown'>): MiddlewareHandler<ServerEnv> =>
  async (c, next) => {
    await next()
    // A message that is accepted is answered with ids only, thousands of times in a second; a webhook's answer is the
    // platform's own.
    if (c.res.status === 202 || isWebhook(c.req.path)) return
    if (!/^(?:application\/json|text\/plain)\b/.test(c.res.headers.get('content-type') ?? '')) return
    const text = await c.res.text()
    const shown = redactKnown(text)
    c.res = new Response(shown, c.res)
    if (shown !== text) c.res.headers.delete('content-length')
  }

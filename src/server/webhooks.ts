import { createRoute, z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import type { ServerDeps } from './deps.ts'
import type { App, ServerEnv } from './server-env.ts'
import { HttpError } from './errors.ts'
import { clientOf } from './limits.ts'
import { failures } from './routes.ts'
import type { Uploads } from './uploads.ts'

/** GitHub posts up to 25 MB. */
const WEBHOOK_BYTES = 25_000_000

const route = createRoute({
  method: 'post',
  path: '/webhooks/{platform}',
  summary: 'Receive a signed webhook from a service',
  security: [],
  request: { params: z.strictObject({ platform: z.string() }) },
  responses: {
    200: { description: 'Received', content: { 'text/plain': { schema: z.string() } } },
    ...failures,
  },
})

/**
 * Webhooks don't use our token: each platform verifies its own signature over the raw bytes, so they are passed on
 * untouched. Acknowledged when the platform has answered, which is when the message is durable.
 */
export const addWebhooks = (app: App, { remotes, ready }: ServerDeps, uploads: Uploads): void => {
  app.openAPIRegistry.registerPath(route)
  app.post('/webhooks/:platform', async (c) => {
    const platform = remotes?.get(c.req.param('platform'))
    const webhook = platform?.webhook?.bind(platform)
    if (webhook === undefined) throw new HttpError(404, 'not-found', 'unknown webhook')
    // The service will retry later.
    if (!ready()) throw new HttpError(503, 'busy', 'not accepting messages right now')
    const { incoming } = c.env
    const client = clientOf(incoming.socket.remoteAddress)
    const answer = await uploads.withBody(incoming, { most: WEBHOOK_BYTES, client }, (body) =>
      webhook({ headers: headersOf(c), body }),
    )
    return new Response(answer.body ?? '', {
      status: answer.status,
      headers: { 'content-type': 'text/plain; charset=utf-8', ...answer.headers },
    })
  })
}

export const isWebhook = (path: string): boolean => /^\/webhooks\/[a-z]+$/.test(path)

const headersOf = (c: Context<ServerEnv>): Record<string, string> => Object.fromEntries(c.req.raw.headers)

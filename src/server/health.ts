import { createRoute, z } from '@hono/zod-openapi'
import type { ServerDeps } from './deps.ts'
import type { App } from './server-env.ts'
import { json } from './routes.ts'

const route = createRoute({
  method: 'get',
  path: '/healthz',
  summary: 'Check whether the server accepts messages',
  security: [],
  responses: {
    200: json('Ready', z.object({ status: z.literal('ok'), uptimeSeconds: z.number() })),
    503: json('Starting or stopping', z.object({ status: z.enum(['starting', 'stopping']) })),
  },
})

export const addHealth = (app: App, { ready, stopping }: ServerDeps): void => {
  let wasReady = false
  app.openapi(route, (c) => {
    wasReady ||= ready()
    if (stopping.aborted || !ready()) {
      // After being ready, not ready means stopping: running work finishes first.
      return c.json({ status: wasReady || stopping.aborted ? ('stopping' as const) : ('starting' as const) }, 503)
    }
    return c.json({ status: 'ok' as const, uptimeSeconds: Math.round(process.uptime()) }, 200)
  })
}

import { createRoute } from '@hono/zod-openapi'
import type { ServerDeps } from '../deps.ts'
import type { EventFeed } from '../event-feed.ts'
import type { App } from '../server-env.ts'
import { failures } from '../routes.ts'

const route = createRoute({
  method: 'post',
  path: '/api/wake',
  summary: 'Check for new work now (used by other processes of this home)',
  responses: { 204: { description: 'Accepted' }, ...failures },
})

export const addWake = (app: App, { wake }: ServerDeps, feed: EventFeed): void => {
  app.openapi(route, (c) => {
    wake()
    feed.look()
    return c.body(null, 204)
  })
}

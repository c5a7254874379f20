import { createRoute, z } from '@hono/zod-openapi'
import type { ServerDeps } from '../deps.ts'
import type { App } from '../server-env.ts'
import { failures, json } from '../routes.ts'

const route = createRoute({
  method: 'get',
  path: '/api/status',
  summary: 'Get server status',
  responses: {
    200: json(
      'Server status',
      z.object({
        version: z.string(),
        ready: z.boolean(),
        uptimeSeconds: z.number(),
        home: z.string(),
        worktreesBase: z.string(),
        database: z.string(),
        limit: z.number(),
        platforms: z.array(z.string()),
        agents: z.array(z.string()),
        codebases: z.number(),
        worktrees: z.number(),
        messages: z.object({ waiting: z.number(), running: z.number() }),
        replies: z.object({ waiting: z.number(), failed: z.number() }),
      }),
    ),
    ...failures,
  },
})

export const addStatus = (app: App, deps: ServerDeps): void => {
  const { context, version, ready, databaseName } = deps
  const { isolation, agents, deliveries } = context
  const { store, host, home, worktreesBase, settings } = isolation
  app.openapi(route, async (c) => {
    const [codebases, messages, replies] = await Promise.all([
      store.codebases.list(host),
      store.inbox.counts(),
      store.outbox.counts(),
    ])
    const live = await Promise.all(codebases.map(({ id }) => store.environments.live(id)))
    return c.json(
      {
        version,
        ready: ready(),
        uptimeSeconds: Math.round(process.uptime()),
        home,
        worktreesBase,
        database: databaseName,
        limit: settings.worktreesPerCodebase,
        platforms: [...deliveries.keys()],
        agents: [...agents.keys()],
        codebases: codebases.length,
        worktrees: live.flat().length,
        messages,
        replies,
      },
      200,
    )
  })
}

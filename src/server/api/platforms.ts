import { createRoute, z } from '@hono/zod-openapi'
import type { ServerDeps } from '../deps.ts'
import type { App } from '../server-env.ts'
import { failures } from '../routes.ts'
import { describeRemedy } from '../../commands/views/remedy.ts'
import { asProgram } from '../../commands/views/view.ts'

const shape = z.strictObject({
  platform: z.string(),
  state: z.enum(['connected', 'connecting', 'disconnected', 'off']),
  since: z.string().nullable(),
  lastMessageAt: z.string().nullable(),
  lastError: z.string().nullable(),
})

const route = createRoute({
  method: 'get',
  path: '/api/platforms',
  summary: 'List platforms and their status',
  responses: {
    200: { description: 'The platforms', content: { 'application/json': { schema: z.array(shape) } } },
    ...failures,
  },
})

export const addPlatforms = (app: App, { platforms, remotes, failedPlatforms, redact }: ServerDeps): void => {
  app.openapi(route, (c) => {
    const running = [...platforms.values(), ...(remotes?.values() ?? [])].map((one) => {
      const status = one.status?.()
      return {
        platform: one.platform,
        state: status?.state ?? ('connected' as const),
        since: dateOf(status?.since),
        lastMessageAt: dateOf(status?.lastMessageAt),
        lastError: status?.lastError === undefined ? null : redact(status.lastError),
      }
    })
    const off = (failedPlatforms?.() ?? []).map(({ platform, problem, remedy }) => ({
      platform,
      state: 'off' as const,
      since: null,
      lastMessageAt: null,
      lastError: redact(remedy === undefined ? problem : `${problem}; ${describeRemedy(remedy, asProgram)}`),
    }))
    return c.json([...running, ...off], 200)
  })
}

const dateOf = (at: number | undefined): string | null => (at === undefined ? null : new Date(at).toISOString())

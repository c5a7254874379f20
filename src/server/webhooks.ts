import { createRoute, z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import type { App, ServerDeps, ServerEnv } from './deps.ts'
import { HttpError } from './errors.ts'
import { failures } from './routes.ts'

/** GitHub posts up to 25 MB. */
export const WEBHOOK_BYTES = 25_000_000

/**
 * Nearly all are smaller than that. Larger ones are read a few at a time: whoever sends them has shown nothing yet, and
 * a thousand of them at once would fill the memory. They wait instead of being refused, since GitHub asks only once.
 */
const SMALL_BYTES = 1_000_000
const LARGE_AT_ONCE = 4

const route = createRoute({
  method: 'post',
  path: '/webhooks/{platform}',
  summary: 'What a service posts, signed by it',
  security: [],
  request: { params: z.strictObject({ platform: z.string() }) },
  responses: {
    200: { description: 'Taken', content: { 'text/plain': { schema: z.string() } } },
    ...failures,
  },
})

/**
 * What services post. No token of ours: each platform verifies its own signature over the raw bytes, so they are handed
 * on untouched. Acknowledged when the platform has answered, which is when the message is durable.
 */
export const addWebhooks = (app: App, { remotes, ready }: ServerDeps): void => {
  app.openAPIRegistry.registerPath(route)
  const large = createSeats(LARGE_AT_ONCE)
  app.post('/webhooks/:platform', async (c) => {
    const platform = remotes?.get(c.req.param('platform'))
    if (platform?.webhook === undefined) throw new HttpError(404, 'not-found', 'there is no such webhook here')
    // A service tries again later what it could not deliver now.
    if (!ready()) throw new HttpError(503, 'busy', 'no messages are accepted at the moment')
    const body = await bodyOf(c, large)
    const answer = await platform.webhook({ headers: headersOf(c), body })
    return new Response(answer.body ?? '', {
      status: answer.status,
      headers: { 'content-type': 'text/plain; charset=utf-8', ...answer.headers },
    })
  })
}

export const isWebhook = (path: string): boolean => /^\/webhooks\/[a-z]+$/.test(path)

type Seats = <T>(work: () => Promise<T>) => Promise<T>

const createSeats = (count: number): Seats => {
  let free = count
  const waiting: (() => void)[] = []
  return async (work) => {
    if (free > 0) free -= 1
    else await new Promise<void>((resolve) => waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next === undefined) free += 1
      else next()
    }
  }
}

const bodyOf = async (c: Context<ServerEnv>, large: Seats): Promise<Uint8Array> => {
  const read = async (): Promise<Uint8Array> => new Uint8Array(await c.req.arrayBuffer())
  // A chunked body has no length to go by.
  const length = c.req.header('content-length')
  return length !== undefined && Number(length) <= SMALL_BYTES ? read() : large(read)
}

const headersOf = (c: Context<ServerEnv>): Record<string, string> => Object.fromEntries(c.req.raw.headers)

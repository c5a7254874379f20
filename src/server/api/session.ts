import { createRoute, z } from '@hono/zod-openapi'
import { deleteCookie, setCookie } from 'hono/cookie'
import { cookieName, sessionOf } from '../auth.ts'
import type { App } from '../server-env.ts'
import { HttpError } from '../errors.ts'
import { failures } from '../routes.ts'
import type { Sessions } from '../sessions.ts'

const beginRoute = createRoute({
  method: 'post',
  path: '/api/session',
  summary: 'Exchange the token for a cookie',
  description:
    'For the page and its event stream, which cannot send the Authorization header. A request with the cookie that ' +
    'changes anything needs an `Origin` header with the address of this server.',
  security: [{ token: [] }],
  responses: { 204: { description: 'The cookie is set' }, ...failures },
})

const endRoute = createRoute({
  method: 'delete',
  path: '/api/session',
  summary: "End the cookie's session",
  description: 'All copies of the cookie stop working, and its event streams end.',
  request: {
    query: z.strictObject({
      all: z
        .enum(['true', 'false'])
        .default('false')
        .openapi({ description: 'If `true`, end every session in all browsers' }),
    }),
  },
  responses: { 204: { description: 'The session has ended' }, ...failures },
})

const attributes = { httpOnly: true, sameSite: 'Strict', path: '/' } as const

export const addSession = (app: App, sessions: Sessions): void => {
  app.openapi(beginRoute, async (c) => {
    // A cookie that could renew itself would never expire.
    if (c.var.authenticated?.by !== 'bearer') {
      throw new HttpError(401, 'unauthorized', 'creating a session requires the token', {
        headers: { 'WWW-Authenticate': 'Bearer' },
      })
    }
    const { cookie, maxAge } = await sessions.begin()
    setCookie(c, cookieName(c), cookie, { ...attributes, maxAge })
    return c.body(null, 204)
  })
  app.openapi(endRoute, async (c) => {
    const session = await sessionOf(c, sessions)
    if (session !== undefined) await sessions.end(session)
    if (c.req.valid('query').all === 'true') await sessions.endAll()
    deleteCookie(c, cookieName(c), attributes)
    return c.body(null, 204)
  })
}

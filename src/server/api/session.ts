import { createRoute } from '@hono/zod-openapi'
import { deleteCookie, setCookie } from 'hono/cookie'
import { type Authentication, cookieName } from '../auth.ts'
import type { App } from '../deps.ts'
import { HttpError } from '../errors.ts'
import { failures } from '../routes.ts'

const beginRoute = createRoute({
  method: 'post',
  path: '/api/session',
  summary: 'Exchanges the token for a cookie',
  description: 'For the page and its event stream, which cannot send the Authorization header.',
  security: [{ token: [] }],
  responses: { 204: { description: 'The cookie is set' }, ...failures },
})

const endRoute = createRoute({
  method: 'delete',
  path: '/api/session',
  summary: 'Forgets the cookie',
  responses: { 204: { description: 'The cookie is gone' }, ...failures },
})

const attributes = { httpOnly: true, sameSite: 'Strict', path: '/' } as const

export const addSession = (app: App, authentication: Authentication): void => {
  app.openapi(beginRoute, (c) => {
    // A cookie that could renew itself would never end.
    if (c.var.authenticated !== 'bearer') {
      throw new HttpError(401, 'unauthorized', 'a cookie is given for the token only', {
        headers: { 'WWW-Authenticate': 'Bearer' },
      })
    }
    const { value, maxAge } = authentication.cookie()
    setCookie(c, cookieName(c), value, { ...attributes, maxAge })
    return c.body(null, 204)
  })
  app.openapi(endRoute, (c) => {
    deleteCookie(c, cookieName(c), attributes)
    return c.body(null, 204)
  })
}

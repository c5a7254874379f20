import type { MiddlewareHandler } from 'hono'
import type { ServerEnv } from './server-env.ts'

/** Responses are data: no script, frame, sniffing, cache or other page may use them. */
const defaultHeaders = {
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
} as const

/** Set before the response exists, so that errors have them too. A page replaces the policy with its own. */
export const securityHeaders: MiddlewareHandler<ServerEnv> = (c, next) => {
  const { outgoing } = c.env
  for (const [name, value] of Object.entries(defaultHeaders)) outgoing.setHeader(name, value)
  return next()
}

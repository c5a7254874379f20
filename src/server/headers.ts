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
} as const

const defaultPolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

/** Set after the response exists, so that errors have them too. A page has its own policy. */
export const securityHeaders: MiddlewareHandler<ServerEnv> = async (c, next) => {
  await next()
  const { headers } = c.res
  for (const [name, value] of Object.entries(defaultHeaders)) headers.set(name, value)
  if (!headers.has('Content-Security-Policy')) headers.set('Content-Security-Policy', defaultPolicy)
}

import type { MiddlewareHandler } from 'hono'
import type { ServerEnv } from './server-env.ts'

/** Answers are data: nothing in them may run, be framed, be guessed at, be kept or be read by another page. */
const always = {
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cache-Control': 'no-store',
} as const

const nothing = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

/** Set after the answer is there, so that an error has them as well. A page brings its own policy. */
export const securityHeaders: MiddlewareHandler<ServerEnv> = async (c, next) => {
  await next()
  const { headers } = c.res
  for (const [name, value] of Object.entries(always)) headers.set(name, value)
  if (!headers.has('Content-Security-Policy')) headers.set('Content-Security-Policy', nothing)
}

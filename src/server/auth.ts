import type { Authenticated } from './server-env.ts'
import { hash, timingSafeEqual } from 'node:crypto'
import type { Context } from 'hono'
import { getCookie } from 'hono/cookie'
import type { ServerEnv } from './server-env.ts'
import type { Sessions } from './sessions.ts'

export type Authenticate = (c: Context<ServerEnv>) => Promise<Authenticated | undefined>

export const createAuthenticate = (token: string, sessions: Sessions): Authenticate => {
  const wanted = digest(token)
  return async (c) => {
    const header = c.req.header('authorization')
    // A token in the header decides alone: if it's wrong, a valid cookie doesn't help.
    if (header !== undefined) {
      const [, given] = /^Bearer +([\w.~+/=-]{1,200})$/i.exec(header) ?? []
      return given !== undefined && timingSafeEqual(wanted, digest(given)) ? { by: 'bearer' } : undefined
    }
    const session = await sessionOf(c, sessions)
    return session === undefined ? undefined : { by: 'cookie', session }
  }
}

/** The cookie's session, even if the request also has a token. */
export const sessionOf = async (c: Context<ServerEnv>, sessions: Sessions): Promise<string | undefined> => {
  const cookie = getCookie(c, cookieName(c))
  return cookie === undefined ? undefined : sessions.find(cookie)
}

/**
 * Cookies ignore ports: two servers on one machine would overwrite each other's. For the same reason the browser sends
 * this cookie to other servers on the same host name; it isn't the token, it expires, and changes need our Origin.
 */
export const cookieName = (c: Context<ServerEnv>): string => `coppice-${c.env.incoming.socket.localPort ?? 0}`

/** Equal length for any input, so the comparison's duration reveals nothing. */
const digest = (text: string): Buffer => hash('sha256', text, 'buffer')

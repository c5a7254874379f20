import type { Authenticated } from './server-env.ts'
import { createHash, timingSafeEqual } from 'node:crypto'
import type { Context } from 'hono'
import { getCookie } from 'hono/cookie'
import type { ServerEnv } from './server-env.ts'
import type { Sessions } from './sessions.ts'

export type Authenticate = (c: Context<ServerEnv>) => Promise<Authenticated | undefined>

export const createAuthenticate = (token: string, sessions: Sessions): Authenticate => {
  const wanted = digest(token)
  return async (c) => {
    const header = c.req.header('authorization')
    // Whoever shows a token is judged by it: a wrong one is wrong, whatever the browser adds.
    if (header !== undefined) {
      const [, given] = /^Bearer +([\w.~+/=-]{1,200})$/i.exec(header) ?? []
      return given !== undefined && timingSafeEqual(wanted, digest(given)) ? { by: 'bearer' } : undefined
    }
    const session = await sessionOf(c, sessions)
    return session === undefined ? undefined : { by: 'cookie', session }
  }
}

/** The session of the cookie, whatever else the request shows. */
export const sessionOf = async (c: Context<ServerEnv>, sessions: Sessions): Promise<string | undefined> => {
  const cookie = getCookie(c, cookieName(c))
  return cookie === undefined ? undefined : sessions.find(cookie)
}

/**
 * Cookies know no ports: two servers of one machine would overwrite each other's. For the same reason whatever else
 * serves pages under the same name on another port is shown this cookie by the browser; it is not the token, it ends,
 * and what it changes needs our own Origin.
 */
export const cookieName = (c: Context<ServerEnv>): string => `coppice-${c.env.incoming.socket.localPort ?? 0}`

/** Of equal length whatever was given, so that nothing is told by how long the comparison takes. */
const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { Context } from 'hono'
import { getCookie } from 'hono/cookie'
import type { Clock } from '../domain/clock.ts'
import type { ServerEnv } from './deps.ts'

/** How somebody showed that they know the token. */
export type Authenticated = 'bearer' | 'cookie'

export type Authentication = {
  check(c: Context<ServerEnv>): Authenticated | undefined
  /** A cookie for whoever has shown the token: signed with it, so that none of them needs to be remembered. */
  cookie(): { readonly value: string; readonly maxAge: number }
}

const LIFE_SECONDS = 7 * 24 * 60 * 60

export const createAuthentication = (token: string, clock: Clock): Authentication => {
  const wanted = digest(token)
  const signature = (expires: string): string => createHmac('sha256', token).update(`session ${expires}`).digest('hex')
  const isSession = (value: string): boolean => {
    const [, expires, signed] = /^(\d{1,12})\.([0-9a-f]{64})$/.exec(value) ?? []
    if (expires === undefined || signed === undefined) return false
    return same(digest(signature(expires)), digest(signed)) && Number(expires) > clock() / 1000
  }
  return {
    check: (c) => {
      const header = c.req.header('authorization')
      // Whoever shows a token is judged by it: a wrong one is wrong, whatever the browser adds.
      if (header !== undefined) {
        const [, given] = /^Bearer +([\w.~+/=-]{1,200})$/i.exec(header) ?? []
        return given !== undefined && same(wanted, digest(given)) ? 'bearer' : undefined
      }
      const cookie = getCookie(c, cookieName(c))
      return cookie !== undefined && isSession(cookie) ? 'cookie' : undefined
    },
    cookie: () => {
      const expires = String(Math.floor(clock() / 1000) + LIFE_SECONDS)
      return { value: `${expires}.${signature(expires)}`, maxAge: LIFE_SECONDS }
    },
  }
}

/**
 * Cookies know no ports: two servers of one machine would overwrite each other's. For the same reason whatever else
 * serves pages under the same name on another port is shown this cookie by the browser; it is not the token, it ends,
 * and what it changes needs our own Origin.
 */
export const cookieName = (c: Context<ServerEnv>): string => `coppice-${c.env.incoming.socket.localPort ?? 0}`

/** Of equal length whatever was given, so that nothing is told by how long the comparison takes. */
const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
const same = (a: Buffer, b: Buffer): boolean => timingSafeEqual(a, b)

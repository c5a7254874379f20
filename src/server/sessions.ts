import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../domain/clock.ts'
import type { PageSessionStore } from '../store/page-sessions.ts'

/** Browser sessions, identified by a cookie. Stored, so that they can be ended and survive a restart. */
export type Sessions = {
  begin(): Promise<{ readonly cookie: string; readonly maxAge: number }>
  /** The id of the cookie's session, if it's still live. */
  find(cookie: string): Promise<string | undefined>
  end(id: string): Promise<void>
  endAll(): Promise<void>
  isLive(id: string): Promise<boolean>
  /** Called when this server ends the session. Returns an unsubscribe function. */
  onEnd(id: string, listener: () => void): () => void
}

const SESSION_SECONDS = 7 * 24 * 60 * 60
/** More than anybody's browsers; the oldest end. */
const MAX_SESSIONS = 1_000

export const createSessions = (store: PageSessionStore, token: string, clock: Clock): Sessions => {
  const watching = new Map<string, Set<() => void>>()
  // Signed with the token: a new token ends every session, and a forged cookie never reaches the store.
  const signatureOf = (id: string): Buffer => createHmac('sha256', token).update(`session ${id}`).digest()
  const notify = (listeners: Iterable<() => void>): void => {
    for (const listener of listeners) listener()
  }
  return {
    begin: async () => {
      const id = randomBytes(16).toString('hex')
      const createdAt = clock()
      await store.begin({ id, createdAt, expiresAt: createdAt + SESSION_SECONDS * 1000 }, MAX_SESSIONS)
      return { cookie: `${id}.${signatureOf(id).toString('hex')}`, maxAge: SESSION_SECONDS }
    },
    find: async (cookie) => {
      const [, id, signature] = /^([0-9a-f]{32})\.([0-9a-f]{64})$/.exec(cookie) ?? []
      if (id === undefined || signature === undefined) return undefined
      if (!timingSafeEqual(signatureOf(id), Buffer.from(signature, 'hex'))) return undefined
      return (await store.isLive(id, clock())) ? id : undefined
    },
    end: async (id) => {
      await store.end(id)
      notify(watching.get(id) ?? [])
    },
    endAll: async () => {
      await store.endAll()
      notify([...watching.values()].flatMap((listeners) => [...listeners]))
    },
    isLive: (id) => store.isLive(id, clock()),
    onEnd: (id, listener) => {
      const listeners = watching.get(id) ?? new Set()
      watching.set(id, listeners.add(listener))
      return () => {
        listeners.delete(listener)
        if (listeners.size === 0) watching.delete(id)
      }
    },
  }
}

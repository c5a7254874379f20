import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../domain/clock.ts'
import type { PageSessionStore } from '../store/page-sessions.ts'

/** Sessions of the page: what a cookie stands for. Kept in the store, so that they can be ended and outlive a restart. */
export type Sessions = {
  begin(): Promise<{ readonly cookie: string; readonly maxAge: number }>
  /** The id of the session that this cookie stands for, if it has not ended. */
  find(cookie: string): Promise<string | undefined>
  end(id: string): Promise<void>
  endAll(): Promise<void>
  isLive(id: string): Promise<boolean>
  /** Calls when this server ends the session. Answers what takes that back. */
  onEnd(id: string, listener: () => void): () => void
}

const LIFE_SECONDS = 7 * 24 * 60 * 60
/** More browsers than anybody has. The oldest sessions end. */
const MOST = 1_000

export const createSessions = (store: PageSessionStore, token: string, clock: Clock): Sessions => {
  const watching = new Map<string, Set<() => void>>()
  // Signed with the token: another token ends every session, and a made-up cookie never reaches the store.
  const signatureOf = (id: string): Buffer => createHmac('sha256', token).update(`session ${id}`).digest()
  const tell = (listeners: Iterable<() => void>): void => {
    for (const listener of listeners) listener()
  }
  return {
    begin: async () => {
      const id = randomBytes(16).toString('hex')
      const createdAt = clock()
      await store.begin({ id, createdAt, expiresAt: createdAt + LIFE_SECONDS * 1000 }, MOST)
      return { cookie: `${id}.${signatureOf(id).toString('hex')}`, maxAge: LIFE_SECONDS }
    },
    find: async (cookie) => {
      const [, id, signature] = /^([0-9a-f]{32})\.([0-9a-f]{64})$/.exec(cookie) ?? []
      if (id === undefined || signature === undefined) return undefined
      if (!timingSafeEqual(signatureOf(id), Buffer.from(signature, 'hex'))) return undefined
      return (await store.isLive(id, clock())) ? id : undefined
    },
    end: async (id) => {
      await store.end(id)
      tell(watching.get(id) ?? [])
    },
    endAll: async () => {
      await store.endAll()
      tell([...watching.values()].flatMap((listeners) => [...listeners]))
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

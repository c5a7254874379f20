import type { IsolationContext } from '../isolation/context.ts'
import { runningServer } from '../server/record.ts'
import { readToken } from '../server/token-file.ts'

/** Long for this machine, short for a person. */
const PATIENCE_MS = 500

/**
 * We recorded something to be said, and a server of this home is there to deliver it: it looks at once instead of at its
 * next round. Best effort: what is recorded is delivered either way.
 */
export const wakeServer = async ({ store, home }: Pick<IsolationContext, 'store' | 'home'>): Promise<void> => {
  try {
    const server = runningServer(home)
    if (server === undefined || (await store.outbox.counts()).waiting === 0) return
    const token = readToken(home)?.token
    if (token === undefined) return
    await fetch(new URL('/api/wake', server.url), {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(PATIENCE_MS),
    })
  } catch {
    // Its next round finds it.
  }
}

import type { IsolationContext } from '../isolation/context.ts'
import { runningServer } from '../server/record.ts'
import { readToken } from '../server/token-file.ts'
import type { Ended } from './deliver-hooks.ts'

/** Commands after which the fleet may have work to do. */
const changesFleet = /^(?:item|sling|done|land|fleet|crew|internal (?:leave|answer))\b/

/** Long for a local call, short for people. */
const WAKE_TIMEOUT_MS = 500

/**
 * We recorded replies, and this home's server can deliver them: wakes it, so that it doesn't wait for its next tick.
 * Best effort: recorded replies are delivered either way.
 */
export const wakeServer = async (
  { store, home }: Pick<IsolationContext, 'store' | 'home'>,
  { command, first }: Ended,
): Promise<void> => {
  try {
    if (runningServer(home) === undefined) return
    if (first === undefined && !changesFleet.test(command) && (await store.outbox.counts()).waiting === 0) return
    await askServerToLook(home)
  } catch {
    // The next tick finds it.
  }
}

/** False if no server of this home answers. */
export const askServerToLook = async (home: string): Promise<boolean> => {
  const server = runningServer(home)
  const token = readToken(home)?.token
  if (server === undefined || token === undefined) return false
  try {
    const { ok } = await fetch(new URL('/api/wake', server.url), {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(WAKE_TIMEOUT_MS),
    })
    return ok
  } catch {
    return false
  }
}

import type { Clock } from '../../domain/clock.ts'
import type { PlatformStatus } from '../platform.ts'
import { failureOf } from './failure.ts'

/** The connection's status, according to the last call. */
export type ConnectionStatus = {
  readonly status: () => PlatformStatus
  readonly onMessage: () => void
  readonly watch: <Client extends Calls>(client: Client) => Client
}

export const createConnectionStatus = (clock: Clock): ConnectionStatus => {
  let current: PlatformStatus = {
    state: 'connecting',
    since: clock(),
    lastMessageAt: undefined,
    lastError: undefined,
  }
  const become = (state: PlatformStatus['state']): void => {
    if (current.state !== state) current = { ...current, state, since: clock() }
  }
  const watched =
    <A extends never[], T>(call: (...args: A) => Promise<T>) =>
    async (...args: A): Promise<T> => {
      try {
        const answer = await call(...args)
        become('connected')
        return answer
      } catch (error) {
        const { kind, message } = failureOf(error, clock)
        // A refusal is a response too: GitHub is reachable.
        become(kind === 'away' || kind === 'unauthorized' ? 'disconnected' : 'connected')
        current = { ...current, lastError: message.slice(0, 500) }
        throw error
      }
    }
  return {
    status: () => current,
    onMessage: () => {
      current = { ...current, lastMessageAt: clock() }
    },
    watch: (client) =>
      Object.fromEntries(Object.entries(client).map(([name, call]) => [name, watched(call)])) as typeof client,
  }
}

/** Functions that call GitHub. */
type Calls = Readonly<Record<string, (...args: never[]) => Promise<unknown>>>

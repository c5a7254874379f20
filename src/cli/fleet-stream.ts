import type { EventJson } from '../commands/views/fleet-events.ts'
import type { EventFilter } from '../domain/fleet/event-record.ts'
import type { ServerAddress } from './chat/through-server.ts'
import { readEventStream } from './event-stream.ts'

export type FleetStream = {
  readonly after: number
  readonly wanted: readonly EventFilter[]
  readonly signal: AbortSignal
}

/** Follows the server's events. Returns when the stream ends for whatever reason: the store has the events as well. */
export const readFleetEvents = async (
  { url, token }: ServerAddress,
  { after, wanted, signal }: FleetStream,
  onEvent: (json: EventJson) => void,
): Promise<void> => {
  const path = new URL('/api/events', url)
  path.searchParams.set('after', String(after))
  for (const kind of wanted) path.searchParams.append('kind', kind)
  const response = await fetch(path, { headers: { authorization: `Bearer ${token}` }, signal }).catch(() => undefined)
  if (response?.ok === true) await readEventStream(response, (data) => onEvent(data as EventJson))
  else await response?.body?.cancel()
}

import { toStoredFields } from '../../domain/fleet/event-record.ts'
import type { FleetEvent } from '../../domain/fleet/event.ts'
import type { Store } from '../../store/store.ts'
import type { FleetContext } from '../context.ts'

type Recorder = Pick<FleetContext, 'redact'> & {
  readonly isolation: Pick<FleetContext['isolation'], 'ids' | 'clock'>
}

/** Records an event for `coppice events`, the API and hooks. Call in the transaction that makes the change. */
export const recordEvent = async (
  { redact, isolation: { ids, clock } }: Recorder,
  store: Store,
  event: FleetEvent,
): Promise<void> => {
  const itemId = itemOf(event)
  const item = 'item' in event ? event.item : itemId === undefined ? undefined : await store.items.get(itemId)
  const codebase = item === undefined ? undefined : await store.codebases.get(item.codebaseId)
  const agent = 'agent' in event || itemId === undefined ? undefined : (await store.fleetAgents.ofItems([itemId]))[0]
  await store.events.record({
    id: ids(),
    at: clock(),
    kind: event.kind,
    codebaseId: codebase?.id,
    codebase: 'codebase' in event ? event.codebase : codebase?.name,
    itemId,
    agent: 'agent' in event ? event.agent : agent?.name,
    fields: toStoredFields(event, redact),
  })
}

const itemOf = (event: FleetEvent): number | undefined => {
  if ('item' in event) return event.item.id
  return 'itemId' in event ? event.itemId : undefined
}

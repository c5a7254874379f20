import { type EventFilter, type EventRecord, isWanted } from '../../domain/fleet/event-record.ts'
import type { Store } from '../../store/store.ts'

/** At least one page: the rest is read with the next call. */
const PAGE = 200
const MAX_PAGES = 25

export type EventPage = {
  readonly events: readonly EventRecord[]
  /** Continue after this number. */
  readonly next: number
}

export type EventQuery = {
  readonly limit: number
  /** Default: all. */
  readonly wanted?: readonly EventFilter[]
}

/** The first events after a number. */
export const eventsAfter = async (
  { events: store }: Pick<Store, 'events'>,
  after: number,
  { limit, wanted = [] }: EventQuery,
): Promise<EventPage> => {
  const events: EventRecord[] = []
  let next = after
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const most = wanted.length === 0 ? Math.min(PAGE, limit - events.length) : PAGE
    const found = await store.page({ after: next, limit: most })
    for (const event of found) {
      next = event.number
      if (wanted.length === 0 || isWanted(event, wanted)) events.push(event)
      if (events.length === limit) return { events, next }
    }
    if (found.length < most) break
  }
  return { events, next }
}

/** The last events, in order. */
export const lastEvents = async (
  { events: store }: Pick<Store, 'events'>,
  { limit, wanted = [] }: EventQuery,
): Promise<EventPage> => {
  const next = await store.latest()
  const events: EventRecord[] = []
  let before = next + 1
  for (let page = 0; page < MAX_PAGES && events.length < limit; page += 1) {
    const found = await store.page({ before, limit: PAGE })
    const matching = found.filter((event) => wanted.length === 0 || isWanted(event, wanted))
    events.unshift(...matching.slice(Math.max(0, matching.length - (limit - events.length))))
    if (found.length < PAGE) break
    before = found[0]?.number ?? 0
  }
  return { events, next }
}

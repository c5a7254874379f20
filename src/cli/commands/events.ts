import { setTimeout as delay } from 'node:timers/promises'
import { command, isSet, listOf, textOf } from '../../commands/command.ts'
import { usage } from '../../commands/grammar/usage.ts'
import { type EventJson, eventJson, eventLine } from '../../commands/views/fleet-events.ts'
import { type EventFilter, eventFilters } from '../../domain/fleet/event-record.ts'
import { eventsAfter, lastEvents } from '../../fleet/events/read.ts'
import { runningServer } from '../../server/record.ts'
import { readToken } from '../../server/token-file.ts'
import type { Store } from '../../store/store.ts'
import type { CliCall } from '../cli-call.ts'
import { readFleetEvents } from '../fleet-stream.ts'

/** Without --after. */
const LAST = 50
const PAGE = 200
const POLL_MS = 1_000

const run = async (call: CliCall): Promise<undefined> => {
  const wanted = filtersOf(call)
  const given = afterOf(call)
  const { store, home } = (await call.open()).context
  const { output } = call
  const signal = AbortSignal.any([call.signal, output.closed])
  const print = (json: EventJson): void =>
    output.write(`${output.isJson ? JSON.stringify(json) : eventLine(json, output.view)}\n`)
  const first = given === undefined ? await lastEvents(store, { limit: LAST, wanted }) : { events: [], next: given }
  for (const record of first.events) print(eventJson(record))
  let position = await printStored(store, first.next, { wanted, signal, print })
  while (isSet(call.values, 'follow') && !signal.aborted) {
    const server = serverOf(home)
    if (server !== undefined) {
      await readFleetEvents(server, { after: position, wanted, signal }, (json) => {
        print(json)
        position = json.number
      })
    }
    // Without a server, or after it has stopped.
    position = await printStored(store, position, { wanted, signal, print })
    await delay(POLL_MS, undefined, { signal }).catch(() => undefined)
  }
  return undefined
}

type Printing = {
  readonly wanted: readonly EventFilter[]
  readonly signal: AbortSignal
  readonly print: (json: EventJson) => void
}

/** Returns the number to continue after. */
const printStored = async (
  store: Pick<Store, 'events'>,
  after: number,
  { wanted, signal, print }: Printing,
): Promise<number> => {
  for (let position = after; ;) {
    const { events, next } = await eventsAfter(store, position, { limit: PAGE, wanted })
    for (const record of events) if (!signal.aborted) print(eventJson(record))
    if (next === position || signal.aborted) return next
    position = next
  }
}

const serverOf = (home: string): { readonly url: string; readonly token: string } | undefined => {
  const server = runningServer(home)
  const token = readToken(home)?.token
  return server === undefined || token === undefined ? undefined : { url: server.url, token }
}

const filtersOf = ({ values }: CliCall): readonly EventFilter[] =>
  listOf(values, 'kind').map((kind) => {
    const filter = eventFilters.find((known) => known === kind)
    if (filter !== undefined) return filter
    throw usage(`unknown kind ${JSON.stringify(kind.slice(0, 60))}`, `use one of ${eventFilters.join(', ')}`)
  })

const afterOf = ({ values }: CliCall): number | undefined => {
  const text = textOf(values, 'after')
  if (text === undefined) return undefined
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw usage(`invalid --after ${JSON.stringify(text.slice(0, 60))}`, 'pass the number of an event, or 0 for all')
}

export const events = command<undefined, CliCall>({ run, toText: () => '', toJson: () => undefined })

import type { AgentEvent, AlertEvent, FleetEvent, ItemName } from '../../domain/fleet/event.ts'
import type { EventRecord } from '../../domain/fleet/event-record.ts'
import { needsPerson } from '../../domain/fleet/needs-person.ts'
import { capitalized, withFullStop } from '../../domain/text/words.ts'
import { describeItemEvent } from './item-events.ts'
import { explainBlock } from './landings.ts'
import { cutTo } from '../../domain/text/width.ts'
import { printable, type Style, type View } from './view.ts'

/** As documented in docs/events.md: for the API, `coppice events --json` and hooks. */
export type EventJson = {
  readonly number: number
  /** Milliseconds since 1970. */
  readonly at: number
  readonly kind: string
  readonly needsYou: boolean
  readonly codebase: string | null
  readonly item: number | null
  readonly title: string | null
  readonly agent: string | null
  /** A sentence for people. */
  readonly message: string
  /** The other fields of the kind. */
  readonly details: Readonly<Record<string, unknown>>
}

export const eventJson = (record: EventRecord): EventJson => {
  const { number, at, kind, itemId, agent, codebase, event } = record
  return {
    number,
    at,
    kind,
    needsYou: event !== undefined && needsPerson(event),
    codebase: codebase ?? null,
    item: itemId ?? null,
    title: event !== undefined && 'item' in event ? event.item.title : null,
    agent: agent ?? null,
    message: describeRecord(record),
    details: event === undefined ? {} : detailsOf(event),
  }
}

const detailsOf = (event: FleetEvent<ItemName>): Readonly<Record<string, unknown>> => {
  const {
    kind: _kind,
    item: _item,
    agent: _agent,
    itemId: _itemId,
    codebase: _name,
    ...rest
  } = {
    ...anything,
    ...event,
  }
  if (event.kind !== 'refused') return rest
  return { why: event.why.kind === 'not-published' ? event.why.why.kind : event.why.kind }
}

/** Fields that have a place of their own in the JSON. */
const anything = { item: undefined, agent: undefined, itemId: undefined, codebase: undefined }

/** A sentence. */
export const describeRecord = ({ kind, itemId, event }: EventRecord): string => {
  if (event !== undefined) return describeEvent(event)
  return `${itemId === undefined ? 'Something happened' : `Something happened to item ${itemId}`} that only a newer version of Coppice can describe (${kind}).`
}

export const describeEvent = (event: FleetEvent<ItemName>): string =>
  'item' in event ? describeItemEvent(event) : withFullStop(capitalized(describeOther(event)))

const describeOther = (event: AgentEvent | AlertEvent): string => {
  switch (event.kind) {
    case 'crashed':
      return `${event.agent} crashed${workingOn(event)}`
    case 'stuck':
      return `${event.agent} needs you: it has shown no sign of life for a while${workingOn(event)}`
    case 'stray-ended':
      return `the session of ${event.agent} was ended, because its worktree is gone`
    case 'mass-death':
      return `the fleet needs you: ${event.agents.join(', ')} died at about the same time, so no agents are started until \`coppice fleet up\``
    case 'flaky-gate':
      return `\`${event.command}\` failed once and then passed for landing ${event.landing}`
    case 'landing-blocked':
      return `nothing can land in ${event.codebase}: ${explainBlock(event.why, event.codebase).what}`
    case 'hook-failed':
      return `${event.hook} failed, and never got event ${event.event}: ${event.why}`
  }
}

const workingOn = ({ itemId }: AgentEvent): string => (itemId === undefined ? '' : ` while working on item ${itemId}`)

/** `Nov 19 21:16  Item 7 (Fix login) has landed.`: one line that fits the terminal. */
export const eventLine = (
  { at, kind, needsYou, message }: Pick<EventJson, 'at' | 'kind' | 'needsYou' | 'message'>,
  { paint, columns, redact = (text) => text }: Pick<View, 'paint' | 'columns' | 'redact'>,
): string => {
  const time = shortTime(at)
  const text = printable(redact(message)).replaceAll('\n', ' ')
  const shown = columns === undefined ? text : cutTo(text, columns - time.length - 2)
  const style = needsYou ? 'yellow' : styles[kind]
  return `${paint('dim', time)}  ${style === undefined ? shown : paint(style, shown)}`
}

const styles: Readonly<Record<string, Style>> = { landed: 'green', closed: 'green', 'hook-failed': 'red' }

/** In the local time zone. */
const shortTime = (at: number): string => {
  const date = new Date(at)
  const two = (value: number): string => String(value).padStart(2, '0')
  return `${months[date.getMonth()]} ${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}`
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

import type { DoneRefusal } from './done-refusal.ts'
import type { FleetEvent, FleetEventKind, ItemName } from './event.ts'
import type { ParkReason } from './item.ts'
import type { LandingBlock, LandingProblem } from './landing.ts'
import { needsPerson } from './needs-person.ts'

/** An event as it was recorded. */
export type EventRecord = {
  /** From 1, without gaps: whoever has read up to a number has missed nothing before it. */
  readonly number: number
  readonly at: number
  /** Possibly one that only a later version knows. */
  readonly kind: string
  readonly itemId: number | undefined
  readonly agent: string | undefined
  /** The name of the repository. */
  readonly codebase: string | undefined
  /** Undefined if a later version recorded it: this one can't read it. */
  readonly event: FleetEvent<ItemName> | undefined
}

/** What a hook or a filter can ask for: events of a kind, or those that need a person. */
export type EventFilter = 'needs-you' | FleetEventKind

/** The fields of an event, as stored: plain JSON. */
export type StoredFields = Readonly<Record<string, unknown>>

/** Keeps a record small, whatever an agent wrote into it. */
const MAX_TEXT = 4_000
const MAX_LIST = 50

/** Secrets are hidden first: half of one can't be recognised. */
export const toStoredFields = (event: FleetEvent, redact: (text: string) => string): StoredFields => {
  const { kind: _kind, ...fields } = event
  const named = 'item' in fields ? { ...fields, item: { id: fields.item.id, title: fields.item.title } } : fields
  return storedValue(named, redact) as StoredFields
}

const storedValue = (value: unknown, redact: (text: string) => string): unknown => {
  if (typeof value === 'string') return cut(redact(value))
  if (Array.isArray(value)) return value.slice(0, MAX_LIST).map((one) => storedValue(one, redact))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, storedValue(inner, redact)]))
}

const cut = (text: string): string => (text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT).toWellFormed()} …`)

/** Undefined if this version doesn't know the kind, or a field isn't what it should be. */
export const fromStoredFields = (kind: string, fields: unknown): FleetEvent<ItemName> | undefined => {
  const event = { ...(isObject(fields) ? fields : {}), kind }
  return isFleetEvent(event) ? (event as FleetEvent<ItemName>) : undefined
}

export const isWanted = ({ kind, event }: EventRecord, wanted: readonly EventFilter[]): boolean =>
  wanted.some((one) => one === kind) || (wanted.includes('needs-you') && event !== undefined && needsPerson(event))

type Check = (value: unknown) => boolean

type Variant<U extends { readonly kind: string }, K> = U extends unknown ? (K extends U['kind'] ? U : never) : never

/** A check for each field of each kind; the compiler asks for those of a new one. */
type Kinds<U extends { readonly kind: string }> = {
  readonly [K in U['kind']]: { readonly [F in Exclude<keyof Variant<U, K>, 'kind'>]-?: Check }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const oneOf =
  <U extends { readonly kind: string }>(kinds: Kinds<U>): Check =>
  (value) => {
    if (!isObject(value) || typeof value['kind'] !== 'string' || !Object.hasOwn(kinds, value['kind'])) return false
    const fields: Readonly<Record<string, Check>> = kinds[value['kind'] as U['kind']]
    return Object.entries(fields).every(([name, check]) => check(value[name]))
  }

const text: Check = (value) => typeof value === 'string'
const number: Check = (value) => typeof value === 'number'
const texts: Check = (value) => Array.isArray(value) && value.every(text)
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value)
const item: Check = (value) => isObject(value) && number(value['id']) && text(value['title'])

const parkReason = oneOf<ParkReason>({
  asked: { note: optional(text) },
  crashed: { restarts: number },
  'worktree-missing': { path: text },
  'other-branch': { branch: text, head: optional(text) },
  'formula-failed': { step: text, message: text },
  'gate-failed': { command: text, attempts: number },
  conflict: { attempts: number },
  'pull-request-closed': { url: text },
  'status-elsewhere': { source: text, status: text },
  'waits-elsewhere': { source: text, ids: texts },
})

const sentBackReason = oneOf<LandingProblem>({
  conflict: { paths: texts },
  'gate-failed': { command: text, log: text },
})

/** Only those that a person can change are recorded. */
const personRefusal = oneOf<Extract<DoneRefusal, { kind: 'not-approved' | 'not-published' }>>({
  'not-approved': { codebase: text, commands: texts },
  'not-published': {
    environment: (value) => isObject(value) && text(value['branch']) && text(value['path']),
    why: (value) => isObject(value) && text(value['kind']),
  },
})

const landingBlock = oneOf<LandingBlock>({
  offline: { detail: text },
  'base-red': { base: text, command: text, log: text },
  'not-approved': { commands: texts },
  'base-checked-out': { base: text, path: text },
  'no-base': { base: text },
  'remote-changed': { from: text, to: text },
  'remote-unconfirmed': { remote: text, url: text, repository: text },
  'remote-ambiguous': { remotes: texts },
  rejected: { said: text },
  'base-moves': { base: text, attempts: number },
  failed: { message: text },
})

const agent = { agent: text, itemId: optional(number) }

const events: Kinds<FleetEvent<ItemName>> = {
  started: { item, agent: text },
  restarted: { item, agent: text },
  parked: { item, reason: parkReason },
  refused: { item, agent: text, why: personRefusal },
  'pull-request': { item, url: text },
  pushed: { item, branch: text },
  'not-pushed': { item, branch: text },
  queued: { item, landing: number },
  'sent-back': { item, agent: text, landing: number, why: sentBackReason },
  landed: { item },
  closed: { item },
  reopened: { item },
  crashed: { ...agent, restarts: number },
  stuck: { ...agent, since: number },
  'stray-ended': agent,
  'mass-death': { agents: texts },
  'flaky-gate': { landing: number, command: text, log: text },
  'landing-blocked': { codebase: text, why: landingBlock },
  'hook-failed': { hook: text, event: number, why: text },
}

const isFleetEvent = oneOf<FleetEvent<ItemName>>(events)

export const eventFilters: readonly EventFilter[] = ['needs-you', ...(Object.keys(events) as FleetEventKind[])]

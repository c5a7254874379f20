/*
 * Items that come from elsewhere. In: what the source has now, the item, and what the source had the last time. Out: what
 * changes here. A field follows its source until somebody changes it here.
 */
import { createHash } from 'node:crypto'
import { withoutInvisible } from '../../text/visible.ts'
import {
  isSettled,
  type Item,
  type ItemField,
  type ItemSource,
  maxBodyLength,
  maxTitleLength,
  type ParkReason,
  type Phase,
  type Priority,
  type SourceSnapshot,
} from '../item.ts'

/** An item as its source has it. */
export type WantedItem = {
  readonly source: ItemSource
  readonly title: string
  readonly body: string
  readonly priority: Priority
  /** Keys of sources (`sourceKey`) that it waits for: each is an item, or wanted too. */
  readonly after: readonly string[]
  /** Why nobody may start with it. */
  readonly parked?: ParkReason | undefined
  /** Where it stands there, if its states are kept the same on both sides. */
  readonly there?: Phase | undefined
}

/** Undefined if there is nothing to see in the title. One that is too long for an item goes into the body, too. */
export const titleAndBody = (
  title: string,
  body: string,
): { readonly title: string; readonly body: string } | undefined => {
  const line = withoutInvisible(title).replaceAll(/\s+/g, ' ').trim()
  const text = withoutInvisible(body).trim()
  if (line === '') return undefined
  if (line.length <= maxTitleLength) return { title: line, body: text }
  const short = `${line
    .slice(0, maxTitleLength - 1)
    .toWellFormed()
    .trimEnd()}…`
  return { title: short, body: text === '' ? line : `${line}\n\n${text}` }
}

export const isBodyTooLong = (body: string): boolean => body.length > maxBodyLength

/** `after` as the ids of items, sorted. */
export type Resolved = Omit<WantedItem, 'after'> & { readonly after: readonly number[] }

export type ItemPatchFromSource = {
  readonly title?: string
  readonly body?: string
  readonly priority?: Priority
  readonly after?: readonly number[]
}

export type Merged = {
  readonly patch: ItemPatchFromSource
  /** What was changed there and not taken over, because it was changed here, too. */
  readonly edited: readonly ItemField[]
  /** What was changed there and not taken over, because the work has begun. */
  readonly begun: readonly ItemField[]
  /** Undefined if it is what the item has already. */
  readonly seen: SourceSnapshot | undefined
}

export const mergeFromSource = (item: Item, wanted: Resolved): Merged => {
  if (isSettled(item.state)) return { patch: {}, edited: [], begun: [], seen: undefined }
  const known = item.source?.seen
  const now = snapshotOf(wanted)
  const here = snapshotOf(item)
  const changed = fields.filter((field) => !isSame(here, now, field))
  // Without a memory of it, what differs may be a person's.
  const own = changed.filter((field) => known === undefined || !isSame(here, known, field))
  const follows = changed.filter((field) => !own.includes(field))
  const begun = hasBegun(item) ? follows : []
  const taken = follows.filter((field) => !begun.includes(field))
  const patch = Object.fromEntries(taken.map((field) => [field, wanted[field]]))
  const edited = own.filter((field) => known === undefined || !isSame(known, now, field))
  // What waits for the end of the work is still to be taken over if that is given up.
  const seen = { ...now, ...(known !== undefined && Object.fromEntries(begun.map((field) => [field, known[field]]))) }
  const phases = known?.phases
  const complete: SourceSnapshot = phases === undefined ? seen : { ...seen, phases }
  const isKnown = known !== undefined && fields.every((field) => isSame(known, complete, field))
  return { patch, edited, begun, seen: isKnown ? undefined : complete }
}

/** Somebody works on it or has: its text is what they were asked. */
const hasBegun = ({ state, environmentId }: Item): boolean =>
  state !== 'open' && (state !== 'parked' || environmentId !== undefined)

export const snapshotOf = ({
  title,
  body,
  priority,
  after,
}: Pick<Resolved, 'title' | 'body' | 'priority' | 'after'>): SourceSnapshot => ({
  title: digest(title),
  body: digest(body),
  priority,
  after,
})

const fields: readonly ItemField[] = ['title', 'body', 'priority', 'after']

const isSame = (a: SourceSnapshot, b: SourceSnapshot, field: ItemField): boolean =>
  field === 'after' ? a.after.join() === b.after.join() : a[field] === b[field]

/** Only compared with others of its kind. */
const digest = (text: string): string => createHash('sha256').update(text).digest('base64url').slice(0, 22)

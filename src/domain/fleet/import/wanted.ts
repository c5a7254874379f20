/*
 * Merges an item with its source. In: the source's fields now, the item, and the source's fields at the last import.
 * Out: what to update. A field follows its source until somebody edits it here.
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

/** An item as it is in its source. */
export type WantedItem = {
  readonly source: ItemSource
  readonly title: string
  readonly body: string
  readonly priority: Priority
  /** Its dependencies, by `sourceKey`. Each is an item already, or in the same import. */
  readonly after: readonly string[]
  /** Why it is parked. */
  readonly parked?: ParkReason | undefined
  /** Its phase in the source, if states are synced. */
  readonly there?: Phase | undefined
}

/** Undefined if the title has no visible characters. A title that is too long is cut, and added to the body in full. */
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

/** With `after` as sorted item ids. */
export type Resolved = Omit<WantedItem, 'after'> & { readonly after: readonly number[] }

export type ItemPatchFromSource = {
  readonly title?: string
  readonly body?: string
  readonly priority?: Priority
  readonly after?: readonly number[]
}

export type Merged = {
  readonly patch: ItemPatchFromSource
  /** Fields changed in the source but not updated, because they were edited here. */
  readonly edited: readonly ItemField[]
  /** Fields changed in the source but not updated, because work has begun. */
  readonly begun: readonly ItemField[]
  /** The new snapshot. Undefined if it hasn't changed. */
  readonly seen: SourceSnapshot | undefined
}

export const mergeFromSource = (item: Item, wanted: Resolved): Merged => {
  if (isSettled(item.state)) return { patch: {}, edited: [], begun: [], seen: undefined }
  const known = item.source?.seen
  const now = snapshotOf(wanted)
  const here = snapshotOf(item)
  const changed = fields.filter((field) => !isSame(here, now, field))
  // Without a snapshot, a difference may be somebody's edit.
  const own = changed.filter((field) => known === undefined || !isSame(here, known, field))
  const follows = changed.filter((field) => !own.includes(field))
  const begun = hasBegun(item) ? follows : []
  const taken = follows.filter((field) => !begun.includes(field))
  const patch = Object.fromEntries(taken.map((field) => [field, wanted[field]]))
  const edited = own.filter((field) => known === undefined || !isSame(known, now, field))
  // Fields that weren't updated because work has begun keep their old snapshot, to be updated if the item is reopened.
  const seen = { ...now, ...(known !== undefined && Object.fromEntries(begun.map((field) => [field, known[field]]))) }
  const phases = known?.phases
  const complete: SourceSnapshot = phases === undefined ? seen : { ...seen, phases }
  const isKnown = known !== undefined && fields.every((field) => isSame(known, complete, field))
  return { patch, edited, begun, seen: isKnown ? undefined : complete }
}

/** Whether work has begun. Then the item's text is an agent's assignment and must not change. */
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

/** Only ever compared with other digests. */
const digest = (text: string): string => createHash('sha256').update(text).digest('base64url').slice(0, 22)

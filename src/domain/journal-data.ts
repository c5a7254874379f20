import { AppError } from './errors.ts'
import { isSha, type Sha } from './names.ts'

/*
 * What an entry of the journal carries, one schema for each kind. Recovery deletes and moves by what it reads here, so an
 * entry that does not fit its schema is never acted on: no field has a default.
 */

type Check<T> = (value: unknown) => value is T
type Schema = Readonly<Record<string, Check<unknown>>>
type DataOf<S extends Schema> = { readonly [K in keyof S]: S[K] extends Check<infer T> ? T : never }

const text: Check<string> = (value): value is string => typeof value === 'string' && value !== ''
const words: Check<string> = (value) => typeof value === 'string'
const flag: Check<boolean> = (value) => typeof value === 'boolean'
const sha: Check<Sha> = (value): value is Sha => typeof value === 'string' && isSha(value)
const texts: Check<readonly string[]> = (value): value is string[] => Array.isArray(value) && value.every(text)
const oneOf =
  <T extends string>(...allowed: readonly T[]): Check<T> =>
  (value): value is T =>
    allowed.some((one) => one === value)
const optional =
  <T>(check: Check<T>): Check<T | undefined> =>
  (value): value is T | undefined =>
    value === undefined || check(value)
const object =
  <S extends Schema>(schema: S): Check<DataOf<S>> =>
  (value): value is DataOf<S> =>
    typeof value === 'object' && value !== null && misfits(value, schema).length === 0

const spareData = {
  path: text,
  leaf: text,
  start: sha,
  spareId: text,
  /** Device and inode of the directory that was made, whatever lies at the path now. */
  directory: optional(text),
} satisfies Schema

const creationData = {
  path: text,
  leaf: text,
  branch: text,
  branchCreated: flag,
  start: sha,
  /** Records that were there before: an empty one of the same name that is not among them is ours. */
  adminNamesBefore: texts,
  spare: optional(object({ path: text, adminName: text })),
  directory: optional(text),
} satisfies Schema

const restoreData = {
  ...creationData,
  pointId: text,
  /** A second branch that was brought back. */
  ownBranch: optional(object({ name: text, tip: sha })),
} satisfies Schema

export const removeTriggers = ['command', 'closed', 'merged', 'stale', 'room', 'fleet'] as const
export type RemoveTrigger = (typeof removeTriggers)[number]

const removalData = {
  root: optional(text),
  adminDir: optional(text),
  was: oneOf('active', 'missing'),
  branchGoes: flag,
  tip: optional(sha),
  note: words,
  askedBy: optional(text),
  why: words,
  trigger: oneOf(...removeTriggers),
  /** The files of git's record, from the step on that deletes them. */
  files: optional(texts),
} satisfies Schema

export type SpareData = DataOf<typeof spareData>
export type CreationData = DataOf<typeof creationData>
export type RestoreData = DataOf<typeof restoreData>
export type RemovalData = DataOf<typeof removalData>

type Entry = { readonly id: string; readonly kind: string; readonly data: Readonly<Record<string, unknown>> }

export const readSpareData = (entry: Entry): SpareData => read(entry, spareData)
export const readCreationData = (entry: Entry): CreationData => read(entry, creationData)
export const readRestoreData = (entry: Entry): RestoreData => read(entry, restoreData)
export const readRemovalData = (entry: Entry): RemovalData => read(entry, removalData)

const read = <S extends Schema>({ id, kind, data }: Entry, schema: S): DataOf<S> => {
  const wrong = misfits(data, schema)
  if (wrong.length > 0) throw unreadableEntry({ id, kind }, wrong)
  return Object.fromEntries(Object.keys(schema).map((key) => [key, data[key] ?? undefined])) as DataOf<S>
}

const misfits = (data: object, schema: Schema): string[] => {
  const values = data as Readonly<Record<string, unknown>>
  return Object.entries(schema).flatMap(([key, check]) => (check(values[key] ?? undefined) ? [] : [key]))
}

export const unreadableEntry = ({ id, kind }: Omit<Entry, 'data'>, fields: readonly string[]): AppError =>
  new AppError('store-failed', `journal entry ${id} (${kind}) is unreadable and was left alone: ${fields.join(', ')}`, {
    remedy: 'restore the database from a backup, or report this as a bug',
  })

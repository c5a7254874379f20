import { AppError } from './errors.ts'
import { isSha, type Sha } from './names.ts'
import { type BranchNote, branchNoteKinds, type RemovalReason, removalReasonKinds } from './removal/branch-note.ts'

/*
 * The data of journal entries, one schema per kind. Recovery deletes and moves files based on it, so it never acts on
 * an entry that doesn't match its schema, and no field has a default.
 */

type Check<T> = (value: unknown) => value is T
type Schema = Readonly<Record<string, Check<unknown>>>
type DataOf<S extends Schema> = { readonly [K in keyof S]: S[K] extends Check<infer T> ? T : never }

const nonEmptyString: Check<string> = (value): value is string => typeof value === 'string' && value !== ''
const boolean: Check<boolean> = (value) => typeof value === 'boolean'
const sha: Check<Sha> = (value): value is Sha => typeof value === 'string' && isSha(value)
const nonEmptyStrings: Check<readonly string[]> = (value): value is string[] =>
  Array.isArray(value) && value.every(nonEmptyString)
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
    typeof value === 'object' && value !== null && invalidFields(value, schema).length === 0

/** For display only. Earlier versions stored text. */
const told =
  <T extends { readonly kind: string }>(kinds: readonly T['kind'][]): Check<T | string> =>
  (value): value is T | string =>
    typeof value === 'string' ||
    (typeof value === 'object' && value !== null && 'kind' in value && kinds.some((kind) => kind === value.kind))

const spareData = {
  path: nonEmptyString,
  leaf: nonEmptyString,
  start: sha,
  spareId: nonEmptyString,
  /** Device and inode of the created directory: the path may hold another by now. */
  directory: optional(nonEmptyString),
  /** Where an undo moved the directory to the trash from. */
  trashedFrom: optional(nonEmptyString),
} satisfies Schema

const creationData = {
  path: nonEmptyString,
  leaf: nonEmptyString,
  branch: nonEmptyString,
  branchCreated: boolean,
  start: sha,
  /** Records that existed before: an empty one of the same name that isn't listed is ours. */
  adminNamesBefore: nonEmptyStrings,
  spare: optional(object({ path: nonEmptyString, adminName: nonEmptyString })),
  directory: optional(nonEmptyString),
  trashedFrom: optional(nonEmptyString),
} satisfies Schema

const restoreData = {
  ...creationData,
  pointId: nonEmptyString,
  /** A second restored branch. */
  ownBranch: optional(object({ name: nonEmptyString, tip: sha })),
} satisfies Schema

const removeTriggers = ['command', 'closed', 'merged', 'stale', 'room', 'fleet'] as const
export type RemoveTrigger = (typeof removeTriggers)[number]

const removalData = {
  root: optional(nonEmptyString),
  adminDir: optional(nonEmptyString),
  was: oneOf('active', 'missing'),
  branchGoes: boolean,
  tip: optional(sha),
  note: told<BranchNote>(branchNoteKinds),
  askedBy: optional(nonEmptyString),
  why: told<RemovalReason>(removalReasonKinds),
  trigger: oneOf(...removeTriggers),
  /** The files of git's record, set from the step that deletes them. */
  files: optional(nonEmptyStrings),
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
  const wrong = invalidFields(data, schema)
  if (wrong.length > 0) throw unreadableEntry({ id, kind }, wrong)
  return Object.fromEntries(Object.keys(schema).map((key) => [key, data[key] ?? undefined])) as DataOf<S>
}

const invalidFields = (data: object, schema: Schema): string[] => {
  const values = data as Readonly<Record<string, unknown>>
  return Object.entries(schema).flatMap(([key, check]) => (check(values[key] ?? undefined) ? [] : [key]))
}

export const unreadableEntry = ({ id, kind }: Omit<Entry, 'data'>, fields: readonly string[]): AppError =>
  new AppError('store-failed', `journal entry ${id} (${kind}) is unreadable and was left alone: ${fields.join(', ')}`, {
    remedy: 'restore the database from a backup, or report this as a bug',
  })

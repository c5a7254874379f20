import { undoCreation } from './undo-creation.ts'
import { lstat, mkdir } from 'node:fs/promises'
import type { CreationData } from '../../../domain/journal-data.ts'
import { basename } from 'node:path'
import { unlessMissing } from '../../../domain/missing.ts'
import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import { AppError, toAppError } from '../../../domain/errors.ts'
import type { LeftOut } from '../../../domain/removal/restore-point.ts'
import { shellWord } from '../../../domain/text/shell-word.ts'
import { recordNames, worktreePaths, writeToken } from '../../../git/admin-dir.ts'
import type { Tree } from '../../../git/door.ts'
import { upstreamSettings, writeBranchSettings } from '../../../git/upstream.ts'
import type { InsertOutcome } from '../../../store/environments/store.ts'
import type { JournalEntry, Spare } from '../../../store/store.ts'
import { undoOrAbandon } from '../../abandon.ts'
import { withChild } from '../../children.ts'
import type { IsolationContext } from '../../context.ts'
import { locked } from '../../lock/locked.ts'
import { pathCandidates } from '../../paths.ts'
import { directoryNumber, provisioning } from './creation-record.ts'
import type { CreatedTree, Creation, Undone } from './kind.ts'
import type { Plan } from './plan.ts'
import { coppice, type Remedy, remedy } from '../../../domain/remedy.ts'
import type { LeftAlone } from '../../../domain/notice.ts'
import { ReasonedError } from '../../../domain/reasoned-error.ts'

/**
 * Row and intent first, then git. Call with the repository's lock held. A conflict or the limit is a result; anything
 * thrown has already been undone.
 */
export const createTree = async (
  creation: Creation,
): Promise<CreatedTree | Exclude<InsertOutcome, { outcome: 'inserted' }>> => {
  const { context, environment, plan, checkout } = creation
  const spare = creation.useSpare && checkout.spares ? await claimable(creation) : undefined
  const entry = await intent(creation, spare === undefined ? 'adding' : 'taking')
  const outcome = await context.store.transaction(async (store) => {
    const inserted = await store.environments.insert(environment, creation.limit)
    if (inserted.outcome !== 'inserted') return inserted
    await store.journal.begin(entry)
    // In the same transaction, so that a spare is never both free and being moved.
    const claimed = spare !== undefined && (await checkout.spares?.claim(store, spare, entry.id)) === true
    return { ...inserted, claimed }
  })
  if (outcome.outcome !== 'inserted') return outcome
  await context.failpoint(`${creation.kind}.intent`)
  try {
    if (outcome.claimed) creation.whileWriting?.()
    const taken = outcome.claimed && spare ? await checkout.spares?.take(creation, entry, spare) : undefined
    const tree = taken ?? (await addFresh(creation, entry, outcome.claimed))
    await context.failpoint(`${creation.kind}.tree`)
    // A restore has yet to write files over the checkout.
    if (creation.kind === 'create') await context.store.journal.advance(entry.id, { step: provisioning, child: null })
    await writeToken(tree.gitDir, environment.id)
    await context.failpoint(`${creation.kind}.token`)
    const settings = plan.branchSettings ?? (plan.upstream && upstreamSettings(plan.upstream)) ?? []
    await writeBranchSettings(context.git, tree, plan.branch, settings)
    await context.failpoint(`${creation.kind}.attached`)
    return { tree, entry, fromSpare: taken !== undefined }
  } catch (error) {
    const undone = await undoOrAbandon(context, entry.id, () =>
      undoCreation(context, creation.codebase, checkout.undo, entry.id, 'just-failed'),
    )
    throw await withWhereabouts(creation, entry.id, undone, explain(error, plan))
  }
}

/** Undoes a creation that failed after the lock was released. The error to throw says where others' work is. */
export const undoFailed = async (creation: Creation, { entry }: CreatedTree, error: unknown): Promise<unknown> => {
  const { context, codebase, checkout, kind } = creation
  const undone = await undoOrAbandon(context, entry.id, () =>
    locked(context, codebase, `undoing a failed ${kind === 'create' ? 'creation' : kind}`, () =>
      undoCreation(context, codebase, checkout.undo, entry.id, 'just-failed'),
    ),
  )
  return withWhereabouts(creation, entry.id, undone, error)
}

const withWhereabouts = async (
  { context, environment, signal }: Creation,
  entryId: string,
  undone: Undone | undefined,
  error: unknown,
): Promise<unknown> => {
  if (undone?.outcome === 'left') return unfinished(environment, undone.why, error, signal)
  const point = await context.store.restorePoints.get(entryId).catch(() => undefined)
  const where = whereWorkIs(undone, environment, { pointId: entryId, notSaved: point?.contents.leftOut ?? [] })
  if (where === undefined) return error
  const { code, message, remedy: first } = toAppError(error)
  if (signal?.aborted === true) return new AppError('cancelled', message, { cause: error, remedy: where })
  return new AppError(code, message, { cause: error, remedy: first === undefined ? where : remedy`${first}. ${where}` })
}

/** It stays until nothing blocks the undo. */
const unfinished = (
  { path }: IsolatedEnvironment,
  why: LeftAlone,
  error: unknown,
  signal: AbortSignal | undefined,
): AppError => {
  const { code, message, remedy: first } = toAppError(error)
  const where = `The unfinished worktree is still at ${path}`
  const way = remedy`run ${coppice('doctor --fix')} when it is free`
  if (signal?.aborted === true) {
    return new ReasonedError('cancelled', where, [{ left: why }], { cause: error, remedy: way })
  }
  // A script's output ends without a full stop.
  const what = `${message}${message.includes('\n') ? '\n' : '. '}${where}`
  return new ReasonedError(code, what, [{ left: why }], {
    cause: error,
    remedy: first === undefined ? way : remedy`${first}; then ${way}`,
  })
}

const whereWorkIs = (
  undone: Extract<Undone, { outcome: 'undone' }> | undefined,
  { path }: IsolatedEnvironment,
  { pointId, notSaved }: { readonly pointId: string; readonly notSaved: readonly LeftOut[] },
): Remedy | undefined => {
  if (undone === undefined)
    return remedy`The unfinished worktree is still at ${path}: run ${coppice('doctor --fix')} to undo it`
  switch (undone.work) {
    case 'nothing':
      return undefined
    case 'saved':
      return remedy`The changes in the unfinished worktree are saved: ${coppice(`worktree restore ${shellWord(pointId)}`)}${listed(notSaved)}`
    case 'cannot-keep':
      return `The unfinished worktree was left as it is: it was moved, or holds what can't be saved (${path})`
  }
}

const listed = (notSaved: readonly LeftOut[]): string => {
  if (notSaved.length === 0) return ''
  const shown = notSaved.slice(0, 5).map(({ path, reason }) => `${path} (${reason})`)
  return `. Not saved: ${shown.join(', ')}${notSaved.length > 5 ? ` and ${notSaved.length - 5} more` : ''}`
}

/** Provisioning is done: activates the row and ends the intent in one transaction. */
export const activate = async (
  { context, kind, environment, aliases, codebase, checkout }: Creation,
  { tree, entry }: CreatedTree,
): Promise<IsolatedEnvironment> => {
  const remembered = await checkout.ready(tree, environment)
  await context.failpoint(`${kind}.unlocked`)
  const at = context.clock()
  const patch = { lastActivityAt: at, ...remembered }
  await context.store.transaction(async (store) => {
    if (!(await store.environments.transition(environment.id, 'creating', 'active', patch))) {
      throw new AppError('unexpected', `${environment.branch} was undone while it was being made`)
    }
    for (const alias of aliases) await store.environments.addAlias(environment.id, codebase.id, alias, at)
    await store.journal.end(entry.id)
  })
  await context.failpoint(`${kind}.active`)
  return { ...environment, ...patch, status: 'active' }
}

/** The plain path, or one with a hash if another environment or anything else has the plain one. */
export const choosePath = async (
  context: Pick<IsolationContext, 'store' | 'host'>,
  codebase: Codebase,
  root: string,
  plan: Plan,
): Promise<string> => {
  const candidates = pathCandidates(root, codebase.name, plan.branch)
  // A record whose directory is missing (unmounted?) still claims its path.
  const recorded = await worktreePaths(plan.repo.commonDir)
  for (const path of candidates) {
    const row = await context.store.environments.liveByPath(context.host, path)
    if (row === undefined && !recorded.includes(path) && !(await exists(path))) return path
  }
  throw new AppError('path-taken', `${candidates[0]} and ${candidates[1]} are both taken`, {
    remedy: 'move what is there away, or choose another branch name',
  })
}

const exists = async (path: string): Promise<boolean> => (await unlessMissing(lstat(path))) !== undefined

const intent = async (
  { context, codebase, kind, environment, plan, pointId }: Creation,
  step: string,
): Promise<JournalEntry> => {
  const data: CreationData = {
    path: environment.path,
    leaf: basename(environment.path),
    branch: plan.branch,
    branchCreated: plan.origin === 'created',
    start: plan.at,
    adminNamesBefore: await recordNames(plan.repo.commonDir),
    spare: undefined,
    directory: undefined,
    trashedFrom: undefined,
  }
  return {
    id: context.ids(),
    host: context.host,
    codebaseId: codebase.id,
    environmentId: environment.id,
    kind,
    step,
    data: pointId === undefined ? data : { ...data, pointId },
    holder: context.self,
    child: undefined,
    startedAt: context.clock(),
  }
}

const addFresh = async (creation: Creation, entry: JournalEntry, afterSpare: boolean): Promise<Tree> => {
  const { context, kind, environment, checkout } = creation
  if (afterSpare) await context.store.journal.advance(entry.id, { step: 'adding', child: null, data: { spare: null } })
  await context.failpoint(`${kind}.adding`)
  // Git fills an existing empty directory. Its inode identifies it as ours even if git is killed.
  await mkdir(environment.path, { mode: 0o777 })
  const directory = await directoryNumber(environment.path)
  // Git's record identifies worktrees too.
  if (!checkout.sharesRefs) await context.store.journal.advance(entry.id, { data: { directory } })
  return withChild(context, entry.id, { directory }, (onSpawn) => checkout.add(creation, onSpawn))
}

const claimable = async ({ context, codebase, plan }: Creation): Promise<Spare | undefined> => {
  const spares = await context.store.spares.list(codebase.id)
  const here = spares.filter((spare) => spare.host === context.host)
  return here.find((spare) => spare.sha === plan.at) ?? here[0]
}

const explain = (error: unknown, plan: Plan): AppError => {
  const fault = toAppError(error)
  const nested = /'refs\/heads\/([^']+)' exists; cannot create/.exec(fault.message)
  if (!nested) return fault
  return new AppError('name-invalid', `couldn't create branch ${plan.branch}: branch ${nested[1]} is in the way`, {
    cause: error,
    remedy: `choose another name, or rename ${nested[1]}: git cannot keep both`,
  })
}

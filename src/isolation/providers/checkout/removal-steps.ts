import { lstat, mkdir, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import { AppError } from '../../../domain/errors.ts'
import type { Notice } from '../../../domain/notice.ts'
import type { BranchNote, RemovalReason } from '../../../domain/removal/branch-note.ts'
import type { Tree } from '../../../domain/tree.ts'
import { updateRefs } from '../../../git/refs.ts'
import type { Conversation, JournalEntry } from '../../../store/store.ts'
import type { IsolationContext } from '../../context.ts'
import type { RemoveOptions } from '../../remove-outcome.ts'
import { endScripts, endLeftoverGit } from '../../children.ts'
import { syncDirectory } from '../../durable.ts'
import { besidePath, followMoves } from '../../moved.ts'
import { readRemovalData, type RemovalData } from '../../../domain/journal-data.ts'
import type { BranchFate } from './branch-fate.ts'
import type { CheckoutKind } from './kind.ts'
import { unlessMissing } from '../../../domain/missing.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import { pullRequestBranchRef, pullRequestRef } from '../../codebases/fetch-pull-request.ts'
import { discardRestorePoint } from './restore-point/restore-point.ts'
import { findInTrash, giveUp } from '../../trash/trash.ts'

export type Removal = {
  readonly root: string | undefined
  /** Undefined if neither its files nor git's record exist. */
  readonly tree: Tree | undefined
  readonly fate: BranchFate
  readonly options: RemoveOptions
}

/** Records that the removal begins: from here on recovery finishes or undoes it. */
export const beginRemoval = async (
  context: IsolationContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  { root, tree, fate, options }: Removal,
): Promise<JournalEntry> => {
  const { status: was } = environment
  if (was !== 'active' && was !== 'missing') throw beingChanged(environment)
  const entry: JournalEntry = {
    id: context.ids(),
    host: context.host,
    codebaseId: codebase.id,
    environmentId: environment.id,
    kind: 'remove',
    step: 'intent',
    data: {
      root,
      adminDir: tree?.gitDir,
      was,
      branchGoes: fate.goes,
      tip: fate.tip,
      note: fate.note,
      askedBy: options.askedBy,
      why: whyOf(options),
      trigger: options.trigger,
      files: undefined,
    } satisfies RemovalData,
    holder: context.self,
    child: undefined,
    startedAt: context.clock(),
  }
  await context.store.transaction(async (store) => {
    if (!(await store.environments.transition(environment.id, environment.status, 'removing'))) {
      throw beingChanged(environment)
    }
    await store.journal.begin(entry)
  })
  await context.failpoint('remove.intent')
  return entry
}

const beingChanged = ({ branch }: IsolatedEnvironment): AppError =>
  new AppError('busy', `${branch} is being changed by another process`)

/** Before the point of no return everything can be undone, after it nothing. */
export const recoverRemoval = async (
  context: IsolationContext,
  checkout: CheckoutKind,
  codebase: Codebase,
  entryId: string,
): Promise<void> => {
  const entry = await context.store.journal.get(entryId)
  if (entry === undefined) return
  // Validate first: leave an entry that doesn't fit.
  readRemovalData(entry)
  const running = await endLeftoverGit(context, codebase.repoPath, entry)
  if (running !== undefined) throw new AppError('busy', `can't finish an interrupted removal: ${running}`)
  if (!(await endScripts(context, entry))) {
    throw new AppError('busy', 'a process that teardown of an interrupted removal started is still running')
  }
  if (await checkout.isForgotten(context, codebase, entry)) await finishRemoval(context, checkout, codebase, entryId)
  else await undoRemoval(context, checkout, codebase, entryId)
}

/** Undefined if another process has settled it meanwhile. */
const openRemoval = async (
  { store }: Pick<IsolationContext, 'store'>,
  entryId: string,
): Promise<{ readonly entry: JournalEntry; readonly environment: IsolatedEnvironment } | undefined> => {
  const entry = await store.journal.get(entryId)
  const environment = entry?.environmentId && (await store.environments.get(entry.environmentId))
  return entry === undefined || !environment ? undefined : { entry, environment }
}

export const undoRemoval = async (
  context: IsolationContext,
  checkout: CheckoutKind,
  codebase: Codebase,
  entryId: string,
): Promise<void> => {
  const open = await openRemoval(context, entryId)
  if (open === undefined) return
  const { entry, environment } = open
  const { root, was } = readRemovalData(entry)
  const path = root === undefined ? environment.path : await putBack(context, environment, root)
  await checkout.putBack(codebase, entry, path)
  await context.failpoint('undo-remove.back')
  const { state } = await checkout.presence(codebase, { ...environment, path })
  // If its files can't be found now, keep what was saved of them.
  const isFound = was === 'missing' || state === 'present' || state === 'moved'
  if (isFound || (await context.store.restorePoints.get(entry.id)) === undefined) {
    await discardRestorePoint(context, codebase, entry.id)
  }
  await context.failpoint('undo-remove.discarded')
  await context.store.transaction(async (store) => {
    await store.environments.transition(environment.id, 'removing', state === 'missing' ? state : was, { path })
    await store.journal.end(entry.id)
  })
  if (state === 'moved') await followMoves(context, codebase)
}

/** Moves it back; if its path is taken by now, to a new one beside it. */
const putBack = async (
  context: Pick<IsolationContext, 'store'>,
  environment: IsolatedEnvironment,
  root: string,
): Promise<string> => {
  const trash = await findInTrash(root, environment.path, environment.id)
  if (trash === undefined) return environment.path
  const taken = (await unlessMissing(lstat(environment.path))) !== undefined
  const path = taken ? besidePath(environment) : environment.path
  // Record it first: recovery must find it after the rename.
  if (taken) await context.store.environments.update(environment.id, { path })
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await rename(trash, path)
  await syncDirectory(dirname(path))
  return path
}

export type Finished = {
  readonly branchDeleted: boolean
  readonly branchNote: BranchNote | string
  readonly detachedConversations: readonly Conversation[]
  readonly notices: readonly Notice[]
}

export const finishRemoval = async (
  context: IsolationContext,
  checkout: CheckoutKind,
  codebase: Codebase,
  entryId: string,
): Promise<Finished> => {
  const open = await openRemoval(context, entryId)
  if (open === undefined)
    return { branchDeleted: false, branchNote: { kind: 'not-judged' }, detachedConversations: [], notices: [] }
  const { entry, environment } = open
  const { root, branchGoes, tip, note, askedBy, why, trigger } = readRemovalData(entry)
  const settled = await checkout.finishBranch(context, codebase, environment, {
    goes: branchGoes,
    tip,
    pointId: entry.id,
  })
  const branchDeleted = settled.deleted
  await dropPullRequestRef(context, codebase, environment)
  await context.failpoint('remove.branch')
  // Before the entry ends: the files are in the restore point, and nothing refers to these later.
  const trash = root === undefined ? undefined : await giveUp(root, environment.path, environment.id)
  await context.failpoint('remove.given-up')
  const branchNote = settled.note ?? note
  const detachedConversations = await context.store.transaction(async (store) => {
    const saved = (await store.restorePoints.get(entry.id))?.contents
    await store.environments.transition(environment.id, 'removing', 'removed', { removedTip: saved?.tip })
    await store.environments.dropAliases(environment.id)
    await store.ports.release(environment.id)
    const conversations = await store.conversations.detachEnvironment(environment.id)
    await store.items.detachEnvironment(environment.id)
    await context.onEnvironmentLost(store, {
      environment,
      how: 'removed',
      conversations,
      askedBy,
      trigger,
      why,
      branch: { deleted: branchDeleted, note: branchNote },
      leftOut: saved?.leftOut ?? [],
    })
    await store.journal.end(entry.id)
    return conversations
  })
  await context.failpoint('remove.recorded')
  if (trash !== undefined) context.deleteInBackground([trash])
  return {
    branchDeleted,
    branchNote,
    detachedConversations,
    notices: [...(settled.notices ?? []), ...(await verifyGone(checkout, codebase, environment, entry))],
  }
}

/** Shown to its users. */
export const whyOf = ({ why, trigger }: RemoveOptions): RemovalReason => why ?? { kind: reasons[trigger] }

const reasons = {
  command: 'on-request',
  closed: 'closed',
  merged: 'merged',
  stale: 'stale',
  room: 'to-make-room',
  fleet: 'with-its-fleet',
} as const satisfies Record<RemoveOptions['trigger'], RemovalReason['kind']>

/** Deletes our ref to the PR's head once no environment uses it; the restore point keeps the work. */
const dropPullRequestRef = async (
  context: Pick<IsolationContext, 'store' | 'git'>,
  codebase: Codebase,
  { id, prNumber }: IsolatedEnvironment,
): Promise<void> => {
  if (prNumber === undefined) return
  const live = await context.store.environments.live(codebase.id)
  if (live.some((other) => other.id !== id && other.prNumber === prNumber)) return
  const refs = [pullRequestRef(prNumber), pullRequestBranchRef(prNumber)].map((ref) => ({
    delete: ref,
    from: undefined,
  }))
  await updateRefs(context.git, repoOf(codebase), refs, { reason: 'coppice: removed' })
}

/** Reports a directory or git record that is still there. */
const verifyGone = async (
  checkout: CheckoutKind,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  entry: JournalEntry,
): Promise<Notice[]> => {
  const notices: Notice[] = []
  if ((await unlessMissing(lstat(environment.path))) !== undefined) {
    notices.push({ kind: 'path-exists-again', path: environment.path })
  }
  return [...notices, ...(await checkout.leftovers(codebase, entry))]
}

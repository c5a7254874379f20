import { lstat, mkdir, rename } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import { isSha } from '../../domain/names.ts'
import { clearLock, readAdminDir, readLock, readToken, readWorktreeLink } from '../../git/admin-dir.ts'
import { updateRefs } from '../../git/refs.ts'
import { forgetWorktree } from '../../git/worktree-forget.ts'
import { recordPlace } from '../../git/worktree-repair.ts'
import { deleteTree } from '../../process/files/delete-tree.ts'
import type { Conversation, JournalEntry } from '../../store/store.ts'
import type { IsolationContext } from '../context.ts'
import type { RemoveOptions } from '../provider.ts'
import { endScripts, settleChild, withChild } from '../children.ts'
import { syncDirectory } from '../durable.ts'
import { besidePath, followMoves } from '../moved.ts'
import { presenceOf } from '../presence.ts'
import { dropBranch } from './branch-fate.ts'
import type { BranchFate } from './fate.ts'
import { unlessMissing } from '../../domain/missing.ts'
import { repoOf } from '../repo-of.ts'
import { pullRequestBranchRef, pullRequestRef } from './fetch-pull-request.ts'
import { discardRestorePoint } from './restore-point.ts'
import { isUntouched, recordFiles } from './record-files.ts'
import { removeStaleLocks } from './stale-locks.ts'
import { findInTrash, giveUp } from './trash.ts'

export type Removal = {
  readonly root: string | undefined
  readonly adminDir: string | undefined
  readonly fate: BranchFate
  readonly options: RemoveOptions
}

/** The intent of a removal, and how to take it back or carry it through from wherever it stopped. */

export const beginRemoval = async (
  context: IsolationContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  { root, adminDir, fate, options }: Removal,
): Promise<JournalEntry> => {
  const entry: JournalEntry = {
    id: context.ids(),
    host: context.host,
    codebaseId: codebase.id,
    environmentId: environment.id,
    kind: 'remove',
    step: 'intent',
    data: {
      root: root ?? null,
      adminDir: adminDir ?? null,
      was: environment.status,
      branchGoes: fate.goes,
      tip: fate.tip ?? null,
      note: fate.note,
      askedBy: options.askedBy ?? null,
      why: whyOf(options),
      trigger: options.trigger,
    },
    holder: context.self,
    child: undefined,
    startedAt: context.clock(),
  }
  await context.store.transaction(async (store) => {
    if (!(await store.environments.transition(environment.id, environment.status, 'removing'))) {
      throw new AppError('busy', `${environment.branch} is being changed by another process`)
    }
    await store.journal.begin(entry)
  })
  await context.failpoint('remove.intent')
  return entry
}

/** Whether git still has its record decides: until it is gone everything can be taken back, after that nothing. */
export const settleRemoval = async (context: IsolationContext, codebase: Codebase, entryId: string): Promise<void> => {
  const entry = await context.store.journal.get(entryId)
  if (entry === undefined) return
  if (!(await settleChild(context, codebase.repoPath, entry))) {
    throw new AppError('busy', 'a git process of an interrupted removal is still running')
  }
  if (!(await endScripts(context, entry))) {
    throw new AppError('busy', 'a process that teardown of an interrupted removal started is still running')
  }
  const { adminDir, files } = read(entry, codebase)
  await removeStaleLocks(codebase, entry, { branch: await branchOf(context, entry), adminDir })
  if (entry.step === 'forgetting' && adminDir !== undefined && !(await isUntouched(adminDir, files))) {
    await deleteRest(context, entry, adminDir)
    await finishRemoval(context, codebase, entryId)
  } else if ((await recordOf(codebase, entry)) === undefined && entry.step !== 'intent') {
    await finishRemoval(context, codebase, entryId)
  } else await undoRemoval(context, codebase, entryId)
}

export const undoRemoval = async (context: IsolationContext, codebase: Codebase, entryId: string): Promise<void> => {
  const entry = await context.store.journal.get(entryId)
  const environment = entry?.environmentId && (await context.store.environments.get(entry.environmentId))
  if (entry === undefined || !environment) return
  const { root, was } = read(entry, codebase)
  const path = root === undefined ? environment.path : await putBack(context, environment, root)
  const record = await recordOf(codebase, entry)
  // Git's record still names the old place when somebody had taken that and the tree went beside it.
  const isLinked = record !== undefined && (await readWorktreeLink(path)) === record
  if (isLinked && (await readAdminDir(record))?.worktreePath !== path) {
    recordPlace(record, path)
  }
  await context.failpoint('undo-remove.back')
  const { state } = await presenceOf(codebase, { ...environment, path })
  // One whose files nobody can find now keeps what was saved of them.
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

/** Back to where it was; if somebody has taken that path meanwhile, to a fresh one beside it. */
const putBack = async (context: IsolationContext, environment: IsolatedEnvironment, root: string): Promise<string> => {
  const trash = await findInTrash(root, environment.path, environment.id)
  if (trash === undefined) return environment.path
  const taken = (await unlessMissing(lstat(environment.path))) !== undefined
  const path = taken ? besidePath(environment) : environment.path
  // Written down first: a crash after the rename must find it there.
  if (taken) await context.store.environments.update(environment.id, { path })
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await rename(trash, path)
  await syncDirectory(dirname(path))
  return path
}

/** The point of no return: git's record goes. Journaled, since git may go on when we are gone. */
export const forgetRecord = async (
  context: IsolationContext,
  codebase: Codebase,
  entryId: string,
  adminDir: string,
): Promise<void> => {
  const lock = await readLock(adminDir)
  if (lock?.startsWith('coppice: ') === true) await clearLock(adminDir, lock)
  const files = await recordFiles(adminDir)
  await context.store.journal.advance(entryId, { step: 'forgetting', data: { files } })
  await context.failpoint('remove.forgetting')
  try {
    await withChild(context, entryId, {}, (onSpawn) =>
      forgetWorktree(context.git, repoOf(codebase), { dir: adminDir }, { onSpawn }),
    )
  } catch (error) {
    // Git would not begin, and has a reason: the removal is taken back. Once it has begun there is no way back.
    if (await isUntouched(adminDir, files)) throw error
    const entry = await context.store.journal.get(entryId)
    if (entry !== undefined) await deleteRest(context, entry, adminDir)
  }
}

/**
 * Git deletes the record file by file, and died half-way. What was worth keeping is in the restore point: the rest goes.
 * A record of the same name that is somebody else's by now stays.
 */
const deleteRest = async (context: IsolationContext, entry: JournalEntry, adminDir: string): Promise<void> => {
  const record = await readAdminDir(adminDir)
  const environment = entry.environmentId && (await context.store.environments.get(entry.environmentId))
  if (record === undefined || !environment) return
  const elsewhere = record.worktreePath !== undefined && record.worktreePath !== environment.path
  const token = await readToken(adminDir)
  const taken = (await unlessMissing(lstat(environment.path))) !== undefined
  if (elsewhere || taken || (token !== undefined && token !== environment.id)) return
  await deleteTree(adminDir)
}

export type Finished = {
  readonly branchDeleted: boolean
  readonly branchNote: string
  readonly letGo: readonly Conversation[]
  readonly notices: readonly string[]
}

export const finishRemoval = async (
  context: IsolationContext,
  codebase: Codebase,
  entryId: string,
): Promise<Finished> => {
  const entry = await context.store.journal.get(entryId)
  const environment = entry?.environmentId && (await context.store.environments.get(entry.environmentId))
  if (entry === undefined || !environment) return { branchDeleted: false, branchNote: '', letGo: [], notices: [] }
  const { root, branchGoes, tip, note, askedBy, why, trigger } = read(entry, codebase)
  const dropped =
    branchGoes && tip !== undefined ? await dropBranch(context, codebase, environment.branch, tip) : undefined
  const branchDeleted = dropped?.deleted === true
  await dropPullRequestRef(context, codebase, environment)
  await context.failpoint('remove.branch')
  // Before the entry ends: the bytes are in the restore point, and nothing speaks of them afterwards.
  const trash = root === undefined ? undefined : await giveUp(root, environment.path, environment.id)
  await context.failpoint('remove.given-up')
  const branchNote = dropped?.deleted === false ? dropped.why : note
  const letGo = await context.store.transaction(async (store) => {
    await store.environments.transition(environment.id, 'removing', 'removed')
    await store.environments.dropAliases(environment.id)
    await store.ports.release(environment.id)
    const conversations = await store.conversations.letGo(environment.id)
    const branch = `Branch ${branchDeleted ? 'deleted' : 'kept'}: ${branchNote}.`
    const leftOut = (await store.restorePoints.get(entry.id))?.contents.leftOut ?? []
    await context.onEnvironmentLost(store, {
      environment,
      how: 'removed',
      conversations,
      askedBy,
      trigger,
      why,
      branch,
      leftOut,
    })
    await store.journal.end(entry.id)
    return conversations
  })
  await context.failpoint('remove.recorded')
  if (trash !== undefined) context.reap([trash])
  return {
    branchDeleted,
    branchNote,
    letGo,
    notices: await verifyGone(codebase, environment, entry),
  }
}

/** For those who are told. */
export const whyOf = ({ why, trigger }: RemoveOptions): string => why ?? reasons[trigger]

const reasons: Record<RemoveOptions['trigger'], string> = {
  command: 'on request',
  closed: 'closed',
  merged: 'merged',
  stale: 'stale',
  room: 'merged, to make room',
  fleet: 'with its fleet',
}

/** The PR's head was kept for as long as an environment was of it; the restore point holds what was worked on. */
const dropPullRequestRef = async (
  context: IsolationContext,
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

/** Says so when the directory or git's record is still there after all. */
const verifyGone = async (
  codebase: Codebase,
  environment: IsolatedEnvironment,
  entry: JournalEntry,
): Promise<string[]> => {
  const notices: string[] = []
  if ((await unlessMissing(lstat(environment.path))) !== undefined) {
    notices.push(`${environment.path} exists again; it isn't Coppice's, so it was left alone`)
  }
  const record = await recordOf(codebase, entry)
  if (record !== undefined) notices.push(`git still has its record ${record}`)
  return notices
}

const branchOf = async (context: IsolationContext, { environmentId }: JournalEntry): Promise<string | undefined> =>
  environmentId === undefined ? undefined : (await context.store.environments.get(environmentId))?.branch

/** Git's record, if it is there and still carries this environment's token. */
const recordOf = async (codebase: Codebase, entry: JournalEntry): Promise<string | undefined> => {
  const { adminDir } = read(entry, codebase)
  if (adminDir === undefined || (await readAdminDir(adminDir)) === undefined) return undefined
  return (await readToken(adminDir)) === entry.environmentId ? adminDir : undefined
}

const read = ({ data }: JournalEntry, { repoPath }: Codebase) => ({
  root: typeof data['root'] === 'string' ? data['root'] : undefined,
  // By its name: the repository may have been moved since.
  adminDir: typeof data['adminDir'] === 'string' ? join(repoPath, 'worktrees', basename(data['adminDir'])) : undefined,
  was: data['was'] === 'missing' ? ('missing' as const) : ('active' as const),
  branchGoes: data['branchGoes'] === true,
  tip: typeof data['tip'] === 'string' && isSha(data['tip']) ? data['tip'] : undefined,
  note: typeof data['note'] === 'string' ? data['note'] : '',
  askedBy: typeof data['askedBy'] === 'string' ? data['askedBy'] : undefined,
  why: typeof data['why'] === 'string' ? data['why'] : 'on request',
  trigger: triggers.find((one) => one === data['trigger']) ?? 'command',
  files: Array.isArray(data['files']) ? data['files'].map(String) : [],
})

const triggers = Object.keys(reasons) as RemoveOptions['trigger'][]

import type { RepoConfig } from '../../../domain/config/repository.ts'
import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import { AppError, isAppError, toAppError } from '../../../domain/errors.ts'
import { isMissing } from '../../../domain/missing.ts'
import { type GateAnswer, refusals, cannotTell, no } from '../../../domain/removal/gates.ts'
import type { EnvironmentId } from '../../../domain/names.ts'
import type { Notice } from '../../../domain/notice.ts'
import type { RestorePoint } from '../../../domain/removal/restore-point.ts'
import { shellWord } from '../../../domain/text/shell-word.ts'
import { ReasonedError } from '../../../domain/reasoned-error.ts'
import type { Tree } from '../../../git/door.ts'
import { freshen } from '../../codebases/base.ts'
import type { Fresh } from '../../codebases/base-branch.ts'
import { baseAndConfig } from '../../codebases/base-and-config.ts'
import { undoOrAbandon } from '../../abandon.ts'
import type { IsolationContext } from '../../context.ts'
import { type Dirt, isAsSaved, readDirt } from './look/dirt.ts'
import { keptFilesThatDiffer } from './provision/additions.ts'
import { freshBase } from '../../codebases/fresh-base.ts'
import {
  type Inspection,
  type Judgement,
  type Subject,
  askGates,
  firstRefusals,
  allPass,
  isUnmounted,
  reasonsIn,
  stillInUse,
  usesOf,
} from '../../gates.ts'
import { locked } from '../../lock/locked.ts'
import { followed } from '../../moved.ts'
import { managedRoot } from '../../paths.ts'
import { releaseRow } from '../../release.ts'
import type {
  Refused,
  Released,
  RemovableQuestion,
  RemoveOptions,
  RemoveOutcome,
  Removed,
} from '../../remove-outcome.ts'
import { notKept } from './restore-point/archive.ts'
import { type BranchFate, judgeBranch } from './branch-fate.ts'
import type { CheckoutKind } from './kind.ts'
import { beginRemoval, finishRemoval, recoverRemoval, undoRemoval, whyOf } from './removal-steps.ts'
import { type ToSave, writeRestorePoint } from './restore-point/restore-point.ts'
import { foreignLock, saveMissing } from './save-missing.ts'
import { leftRunning, runTeardown } from './provision/scripts.ts'
import { moveToTrash } from '../../trash/trash.ts'
import { coppice, remedy } from '../../../domain/remedy.ts'

/**
 * The only removal function, used by close events, the scheduler, the limit, commands and doctor. Changes nothing until
 * every gate has answered.
 */
export const removeEnvironment = async (
  context: IsolationContext,
  checkout: CheckoutKind,
  codebase: Codebase,
  { id, branch }: IsolatedEnvironment,
  options: RemoveOptions,
): Promise<RemoveOutcome> => {
  const { signal } = options
  const maxAgeMs = freshEnough(context, options)
  const fresh = maxAgeMs === undefined ? undefined : await freshen(context, codebase, { maxAgeMs, signal })
  return locked(
    context,
    codebase,
    `removing ${branch}`,
    () => remove(context, checkout, codebase, id, options, fresh),
    signal,
  )
}

/** "Merged" is judged by the remote's base. The sweep and the limit have already fetched it. */
const freshEnough = (context: Pick<IsolationContext, 'settings'>, { trigger }: RemoveOptions): number | undefined => {
  if (trigger === 'closed') return 0
  return trigger === 'command' || trigger === 'fleet' ? context.settings.fetchFreshSeconds * 1000 : undefined
}

const remove = async (
  context: IsolationContext,
  checkout: CheckoutKind,
  codebase: Codebase,
  id: EnvironmentId,
  options: RemoveOptions,
  fresh: Fresh | undefined,
): Promise<RemoveOutcome> => {
  const { environment: known } = await followed(context, codebase, await current(context, id))
  if (!known.owned) return release(context, known, options)
  const { base, config, stale } =
    fresh === undefined
      ? { ...(await baseAndConfig(context, codebase)), stale: options.staleBase }
      : await freshBase(context, codebase, fresh, { signal: options.signal })
  const presence = await checkout.presence(codebase, known)
  const { environment, notices: renamed } =
    presence.state === 'present'
      ? await checkout.followRename(context, codebase, known, presence.tree, options)
      : { environment: known, notices: [] }
  // Check history and files in parallel: git uses a full core for each.
  const judged = judgeBranch(context, codebase, environment, base, stale)
  judged.catch(() => undefined)
  const subject: RemovalSubject = {
    codebase,
    environment,
    presence,
    merged: async () => (await judged).merged,
    inspection: inspectionOf(context, checkout, codebase, environment, config),
    config,
    checkout,
    options,
  }
  const judgement = await askGates(context, subject)
  const { contents: dirt, notices } = judgement
  const fate = await judged
  const reasons = await refusalsIn(subject, judgement)
  const leftOut = notKept(dirt?.special ?? [])
  if (reasons.length > 0) return { outcome: 'refused', environment, reasons, notKept: leftOut }
  if (options.dryRun === true) return { outcome: 'would-remove', environment, merged: fate.merged, leftOut }
  if (presence.state === 'missing') return saveMissing(context, checkout, codebase, environment, fate, options)
  if (presence.state !== 'present' || dirt === undefined) return unanswered(environment)
  return removePresent(context, subject, presence.tree, dirt, fate, [...renamed, ...notices])
}

/** As `remove` would, but until the first refusal, and without a lock: for a count of what cleanup can remove. */
export const whyNotRemovable = async (
  context: IsolationContext,
  checkout: CheckoutKind,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  { options, config, merged, inside }: RemovableQuestion,
): Promise<readonly GateAnswer[]> => {
  const subject: RemovalSubject = {
    codebase,
    environment,
    presence: await checkout.presence(codebase, environment),
    merged: async () => merged,
    inspection: inspectionOf(context, checkout, codebase, environment, config),
    config,
    checkout,
    options,
    inside,
  }
  return refusalsIn(subject, await firstRefusals(context, subject))
}

const refusalsIn = async (
  { checkout, codebase, environment, presence, options }: RemovalSubject,
  { answers, contents }: Judgement<Dirt>,
): Promise<GateAnswer[]> => {
  const lock = presence.state === 'missing' ? await foreignLock(checkout, codebase, environment) : undefined
  const byLock: GateAnswer[] = lock === undefined ? [] : [no('not-in-use', { kind: 'lock', reason: lock })]
  return refusals([...byLock, ...otherBranch(environment, contents, options), ...answers], options.force === true)
}

type RemovalSubject = Subject<Dirt> & { readonly config: RepoConfig; readonly checkout: CheckoutKind }

const inspectionOf = (
  context: IsolationContext,
  checkout: CheckoutKind,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  config: RepoConfig,
): Inspection<Dirt> => ({
  contents: (tree) => readDirt(context, codebase, environment, tree, config),
  unreachable: (tree) => checkout.unreachable(context, codebase, environment, tree),
  changedCopies: (tree) => keptFilesThatDiffer(context, codebase, tree, config),
})

/** The recorded branch was judged merged. If another one is checked out, someone is working there. */
const otherBranch = (
  { branch }: IsolatedEnvironment,
  dirt: Dirt | undefined,
  { trigger }: RemoveOptions,
): GateAnswer[] => {
  const head = dirt?.headBranch
  if (head === undefined || head === branch || (trigger !== 'merged' && trigger !== 'room')) return []
  return [no('nothing-uncommitted', { kind: 'other-branch', head, branch })]
}

/** Every gate passed. From the intent on, recovery finishes or undoes it after a crash. */
const removePresent = async (
  context: IsolationContext,
  subject: RemovalSubject,
  tree: Tree,
  seen: Dirt,
  fate: BranchFate,
  notices: readonly Notice[],
): Promise<Removed | Refused> => {
  const { codebase, environment, options, checkout } = subject
  const root = await managedRoot(environment.path, context.host)
  if (root === undefined) return unanswered(environment)
  const entry = await beginRemoval(context, codebase, environment, { root, tree, fate, options })
  try {
    const { dirt, notices: torn } = await afterTeardown(context, subject, tree, seen)
    const point = await save(context, { checkout, codebase, environment, tree, dirt, id: entry.id, fate })
    await context.store.journal.advance(entry.id, { step: 'saved' })
    await context.failpoint('remove.saved')
    const trash = await moveToTrash(root, environment.path, environment.id)
    await context.failpoint('remove.moved')
    const changed = await lookAgain(context, subject, checkout.movedTree(tree, trash), dirt)
    if (changed.length > 0) {
      await undoRemoval(context, checkout, codebase, entry.id)
      return { outcome: 'refused', environment, reasons: changed }
    }
    await context.failpoint('remove.checked')
    await checkout.forget(context, codebase, entry.id, checkout.movedTree(tree, trash))
    await context.failpoint('remove.forgotten')
    const finished = await finishRemoval(context, checkout, codebase, entry.id)
    return {
      outcome: 'removed',
      environment: { ...environment, status: 'removed' },
      restorePoint: point,
      branchDeleted: finished.branchDeleted,
      branchNote: finished.branchNote,
      leftOut: point.contents.leftOut,
      detachedConversations: finished.detachedConversations.filter(({ id }) => id !== options.askedBy),
      notices: [...notices, ...torn, ...finished.notices],
    }
  } catch (error) {
    await undoOrAbandon(context, entry.id, () => recoverRemoval(context, checkout, codebase, entry.id))
    if (!isMissing(error)) throw error
    throw new AppError('busy', `${environment.branch} was moved or changed while it was being removed`, {
      cause: error,
      remedy: remedy`try again; run ${coppice('worktree list')} to see where it is now`,
    })
  }
}

/** Without a restore point nothing is removed: not even by force, since git's objects may be damaged. */
const save = async (context: IsolationContext, given: ToSave): Promise<RestorePoint> => {
  try {
    return await writeRestorePoint(context, given)
  } catch (error) {
    if (!isAppError(error, 'git-failed') || error.remedy !== undefined) throw error
    const { branch, path } = given.environment
    throw new AppError('git-failed', `couldn't save ${branch}, so it was not removed: ${error.message}`, {
      cause: error,
      remedy: remedy`copy what you need out of ${path}, delete that directory, then run ${coppice(`worktree remove ${shellWord(branch)} --force`)}`,
    })
  }
}

/** Teardown is the repository's own code and may write files: check again before saving. */
const afterTeardown = async (
  context: IsolationContext,
  subject: RemovalSubject,
  tree: Tree,
  seen: Dirt,
): Promise<{ dirt: Dirt; notices: Notice[] }> => {
  const { codebase, environment, config, options } = subject
  if (config.teardown.length === 0) return { dirt: seen, notices: await leftBySetup(context, subject) }
  const { notices }: { notices: readonly Notice[] } = await runTeardown(context, {
    codebase,
    environment,
    tree,
    config,
    signal: options.signal,
  }).catch((error: unknown) => {
    // A failed teardown stops a removal, since what it should stop may still run; --force overrides.
    if (options.force !== true) throw error
    return { notices: [{ kind: 'teardown-failed', message: toAppError(error).message } as const] }
  })
  const dirt = await readDirt(context, codebase, environment, tree, config)
  const left = refusals(reasonsIn(environment, dirt), options.force === true)
  if (left.length > 0) {
    throw new ReasonedError('program-failed', `teardown left ${environment.branch} with work in it`, left, {
      remedy: `check what it wrote: ${environment.path}`,
    })
  }
  return { dirt, notices: [...notices, ...(await leftBySetup(context, subject))] }
}

/** Processes that setup left outside the tree don't stop a removal: others may use them. */
const leftBySetup = async (
  context: Pick<IsolationContext, 'home'>,
  { config, environment }: RemovalSubject,
): Promise<Notice[]> => (config.setup.length === 0 ? [] : leftRunning(context, environment, 'setup'))

/** The directory has been moved away: has anyone written to it, or is anyone in it, since we looked? */
const lookAgain = async (
  context: IsolationContext,
  subject: RemovalSubject,
  moved: Tree,
  saved: Dirt,
): Promise<readonly GateAnswer[]> => {
  const { codebase, environment, config } = subject
  const mounts = await isUnmounted([moved.path, moved.gitDir])
  if (!allPass(mounts)) return mounts
  const [same, use] = await Promise.all([
    isAsSaved(context, codebase, environment, moved, config, saved),
    stillInUse(context, subject, moved),
  ])
  const users = allPass(use) ? use : await stillInUse(context, subject, moved)
  const reasons = users.filter(({ answer }) => answer !== 'yes')
  if (same) return reasons
  return [...reasons, no('nothing-uncommitted', { kind: 'changed-meanwhile' })]
}

/** Coppice never deletes an adopted worktree or its branch: it only stops tracking it. */
const release = async (
  context: IsolationContext,
  environment: IsolatedEnvironment,
  options: RemoveOptions,
): Promise<Released | Refused> => {
  const reasons = await usesOf(context, environment, undefined)
  if (reasons.length > 0) return { outcome: 'refused', environment, reasons }
  if (options.dryRun === true) return { outcome: 'released', environment, detachedConversations: [] }
  const detachedConversations = await context.store.transaction((store) =>
    releaseRow(context, store, environment, options, whyOf(options)),
  )
  const others = detachedConversations.filter(({ id }) => id !== options.askedBy)
  return { outcome: 'released', environment: { ...environment, status: 'released' }, detachedConversations: others }
}

const current = async (context: Pick<IsolationContext, 'store'>, id: EnvironmentId): Promise<IsolatedEnvironment> => {
  const environment = await context.store.environments.get(id)
  if (environment?.status === 'active' || environment?.status === 'missing') return environment
  if (environment?.status === 'creating' || environment?.status === 'removing') {
    throw new AppError('busy', `${environment.branch} is currently ${environment.status}`, {
      remedy: remedy`try again in a moment; if that keeps happening, run ${coppice('doctor --fix')}`,
    })
  }
  throw new AppError('not-found', 'that worktree is already gone', {
    remedy: remedy`run ${coppice('worktree list')} for a list`,
  })
}

const unanswered = (environment: IsolatedEnvironment): Refused => ({
  outcome: 'refused',
  environment,
  reasons: [cannotTell('ours', { kind: 'unknown-instance' })],
})

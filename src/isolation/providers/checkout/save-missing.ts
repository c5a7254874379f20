import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import { readLock } from '../../../git/admin-dir.ts'
import { undoOrAbandon } from '../../abandon.ts'
import type { IsolationContext } from '../../context.ts'
import type { CheckoutKind } from './kind.ts'
import type { Removed, RemoveOptions } from '../../remove-outcome.ts'
import { ReasonedError } from '../../../domain/reasoned-error.ts'
import { no } from '../../../domain/removal/gates.ts'
import { shellWord } from '../../../domain/text/shell-word.ts'
import type { BranchFate } from './branch-fate.ts'
import { beginRemoval, finishRemoval, recoverRemoval } from './removal-steps.ts'
import { missingDirectory, writePointOfHeld, writeRestorePoint } from './restore-point/restore-point.ts'
import { remedy, shell } from '../../../domain/remedy.ts'

/**
 * Removes an environment whose directory is missing. Saves what git's record still has (HEAD, index, reflog), or what
 * the repository holds of a clone; the files, wherever they are, aren't touched. The branch stays: nothing was checked
 * that could prove it merged.
 */
export const saveMissing = async (
  context: IsolationContext,
  checkout: CheckoutKind,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  judged?: BranchFate,
  options: RemoveOptions = { trigger: 'command', why: { kind: 'replaced' } },
): Promise<Removed> => {
  const lock = await foreignLock(checkout, codebase, environment)
  if (lock !== undefined) {
    const reasons = [no('not-in-use', { kind: 'lock', reason: lock })]
    throw new ReasonedError('busy', `${environment.branch} is missing, and can't be given up`, reasons, {
      remedy: remedy`if whoever locked it is done: ${shell(`git -C ${shellWord(codebase.checkoutPath ?? codebase.repoPath)} worktree unlock ${shellWord(environment.path)}`)}`,
    })
  }
  const missing = await asMissing(context, environment)
  const tree = await checkout.treeOfMissing(codebase, missing)
  const held = await checkout.heldForMissing(context, codebase, missing)
  // The repository never had the branch of a clone that has no commits.
  const isEmpty = held?.tip !== undefined && held.tip === missing.startSha && missing.branchOrigin === 'created'
  const fate: BranchFate = {
    merged: judged?.merged ?? { value: 'cannot-tell', why: { kind: 'not-asked' } },
    tip: held?.tip ?? judged?.tip,
    goes: isEmpty,
    note: { kind: isEmpty ? 'no-own-commits' : 'directory-missing' },
  }
  const entry = await beginRemoval(context, codebase, missing, { root: undefined, tree, fate, options })
  try {
    const { id } = entry
    const saved = { codebase, environment: missing, id }
    const point =
      tree !== undefined
        ? await writeRestorePoint(context, { ...saved, checkout, tree, dirt: undefined, fate })
        : held && (await writePointOfHeld(context, { ...saved, held }))
    await context.store.journal.advance(entry.id, { step: 'saved' })
    await context.failpoint('remove.missing-saved')
    await checkout.forget(context, codebase, entry.id, tree)
    await context.failpoint('remove.missing-forgotten')
    const finished = await finishRemoval(context, checkout, codebase, entry.id)
    return {
      outcome: 'removed',
      environment: { ...missing, status: 'removed' },
      restorePoint: point,
      leftOut: point?.contents.leftOut ?? [missingDirectory(missing)],
      ...finished,
    }
  } catch (error) {
    await undoOrAbandon(context, entry.id, () => recoverRemoval(context, checkout, codebase, entry.id))
    throw error
  }
}

/** Another tool's lock on git's record means that the directory will come back. */
export const foreignLock = async (
  checkout: CheckoutKind,
  codebase: Codebase,
  environment: IsolatedEnvironment,
): Promise<string | undefined> => {
  const tree = await checkout.treeOfMissing(codebase, environment)
  const lock = tree === undefined ? undefined : await readLock(tree.gitDir)
  return lock?.startsWith('coppice: ') === true ? undefined : lock
}

const asMissing = async (
  context: Pick<IsolationContext, 'store'>,
  environment: IsolatedEnvironment,
): Promise<IsolatedEnvironment> => {
  if (environment.status === 'missing') return environment
  await context.store.environments.transition(environment.id, 'active', 'missing')
  return { ...environment, status: 'missing' }
}

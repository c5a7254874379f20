import type { Codebase } from '../../../../domain/environment.ts'
import type { BranchName, Sha } from '../../../../domain/names.ts'
import type { Notice } from '../../../../domain/notice.ts'
import type { RestorePoint } from '../../../../domain/removal/restore-point.ts'
import { branchNames, updateRefs } from '../../../../git/refs.ts'
import { type BranchSettings, writeBranchSettings } from '../../../../git/upstream.ts'
import type { IsolationContext } from '../../../context.ts'
import { locked } from '../../../lock/locked.ts'
import { repoOf } from '../../../codebases/repo-of.ts'

/** The saved settings of a branch: the one HEAD was on, or the environment's own. */
export const settingsFor = (
  { contents: { head, environment, branchSettings, ownBranchSettings } }: RestorePoint,
  branch: string,
): BranchSettings | undefined =>
  branch === (head.branch ?? environment.branch)
    ? branchSettings
    : branch === environment.branch
      ? ownBranchSettings
      : undefined

/**
 * HEAD was on another branch than the environment's own, which may have been deleted with it: restores that at its
 * commit, with its settings. If it exists again, it stays as it is.
 */
export const bringOwnBranch = async (
  context: IsolationContext,
  codebase: Codebase,
  point: RestorePoint,
  entryId: string,
): Promise<Notice[]> => {
  const { environment, tip, ownBranchSettings } = point.contents
  if (ownBranchSettings === undefined || tip === undefined) return []
  const own = { branch: environment.branch, tip, settings: ownBranchSettings, entryId }
  return locked(context, codebase, `restoring branch ${environment.branch}`, () => bring(context, codebase, own))
}

type OwnBranch = {
  readonly branch: BranchName
  readonly tip: Sha
  readonly settings: BranchSettings
  readonly entryId: string
}

const bring = async (
  context: Pick<IsolationContext, 'store' | 'git' | 'failpoint'>,
  codebase: Codebase,
  { branch, tip, settings, entryId }: OwnBranch,
): Promise<Notice[]> => {
  const repo = repoOf(codebase)
  const names = await branchNames(context.git, repo)
  if (names.includes(branch)) return []
  const blocked = blockerOf(branch, names)
  if (blocked !== undefined) {
    return [{ kind: 'own-branch-not-restored', branch, tip, why: { kind: 'blocked', by: blocked } }]
  }
  // Record it first, so that a restore that fails later undoes it.
  await context.store.journal.advance(entryId, { data: { ownBranch: { name: branch, tip } } })
  const made = await updateRefs(context.git, repo, [{ create: `refs/heads/${branch}`, to: tip }], {
    reason: 'coppice: restored',
  })
  if (!made.ok) {
    return [{ kind: 'own-branch-not-restored', branch, tip, why: { kind: 'failed', message: made.stderr.trim() } }]
  }
  await context.failpoint('restore.own-branch')
  await writeBranchSettings(context.git, repo, branch, settings)
  return [{ kind: 'own-branch-restored', branch }]
}

/** Git keeps branches as files, so `a/b` can't coexist with `a` or `a/b/c`. */
export const blockerOf = (branch: string, names: readonly string[]): string | undefined =>
  names.find((name) => name.startsWith(`${branch}/`) || branch.startsWith(`${name}/`))

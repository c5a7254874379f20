import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import type { Merged, StaleBase } from '../../../domain/merge-proof.ts'
import type { Sha } from '../../../domain/names.ts'
import type { BranchNote } from '../../../domain/removal/branch-note.ts'
import { branchCheckedOut } from '../../../git/admin-dir.ts'
import { readRef, updateRefs } from '../../../git/refs.ts'
import { countOnlyOnBranch, countUnreachable } from '../../../git/unreachable.ts'
import { dropUpstream } from '../../../git/upstream.ts'
import type { Base } from '../../codebases/base-branch.ts'
import type { IsolationContext } from '../../context.ts'
import { mergeStatusOf } from '../../merge-proof/merge-status.ts'
import { repoOf } from '../../codebases/repo-of.ts'

/** What happens to the branch: it is deleted only with proof, and only if it hasn't moved since. */
export type BranchFate = {
  readonly merged: Merged
  /** Its tip when it was proven; undefined if the branch is gone. */
  readonly tip: Sha | undefined
  readonly goes: boolean
  readonly note: BranchNote
}

export const judgeBranch = async (
  context: IsolationContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  base: Base,
  stale: StaleBase | undefined,
): Promise<BranchFate> => {
  const mergeStatus = await mergeStatusOf(context, codebase, environment, base)
  const { tip } = mergeStatus
  const merged: Merged = stale === undefined ? mergeStatus.merged : { value: 'cannot-tell', why: stale }
  const created = environment.branchOrigin === 'created' && tip !== undefined
  const open = merged.value === 'no' || merged.value === 'cannot-tell'
  const untouched = created && open && (await hasNothingOfItsOwn(context, codebase, environment, tip))
  const goes = created && (merged.value === 'yes' || merged.value === 'empty' || untouched)
  const note: BranchNote = !created
    ? whyItStays(environment, tip)
    : untouched
      ? { kind: 'no-own-commits' }
      : stale === undefined
        ? { kind: 'merge-status', merged, base: base.branch ?? base.name }
        : { kind: 'stale-base', why: stale }
  return { merged, tip, goes, note }
}

/** Started from a branch other than base and never moved: not merged, but nothing to lose. */
const hasNothingOfItsOwn = async (
  context: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  { branch, startSha }: IsolatedEnvironment,
  tip: Sha,
): Promise<boolean> => {
  if (tip !== startSha) return false
  const repo = repoOf(codebase)
  // A clone's branch isn't in the repository, so there is nothing to exclude from the count.
  const sharesRefs = (await readRef(context.git, repo, `refs/heads/${branch}`))?.sha === tip
  return (
    (await (sharesRefs ? countOnlyOnBranch(context.git, repo, branch) : countUnreachable(context.git, repo, [tip]))) ===
    0
  )
}

const whyItStays = ({ branch }: IsolatedEnvironment, tip: Sha | undefined): BranchNote =>
  tip === undefined ? { kind: 'gone', branch } : { kind: 'existed-before' }

/** Deletes the branch if it hasn't moved since it was judged and isn't checked out; otherwise says why not. */
export const dropBranch = async (
  context: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  branch: string,
  tip: Sha,
): Promise<{ readonly deleted: true } | { readonly deleted: false; readonly why: BranchNote }> => {
  const repo = repoOf(codebase)
  const holder = await branchCheckedOut(repo.commonDir, branch)
  if (holder !== undefined) return { deleted: false, why: { kind: 'checked-out', holder } }
  const deleted = await updateRefs(context.git, repo, [{ delete: `refs/heads/${branch}`, from: tip }], {
    reason: 'coppice: removed with its environment',
  })
  if (!deleted.ok) return { deleted: false, why: { kind: 'moved' } }
  await dropUpstream(context.git, repo, branch)
  return { deleted: true }
}

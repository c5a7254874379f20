import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import { AppError } from '../../../domain/errors.ts'
import { type BranchName, type Sha, toBranchName } from '../../../domain/names.ts'
import type { NameTaken, Notice } from '../../../domain/notice.ts'
import { branchCheckedOut } from '../../../git/admin-dir.ts'
import { branchReflog } from '../../../git/reflog.ts'
import { isAncestor } from '../../../git/history.ts'
import { branchNames, isNameOfSomething, readRef, updateRefs } from '../../../git/refs.ts'
import { type BranchSettings, writeBranchSettings } from '../../../git/upstream.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import type { IsolationContext } from '../../context.ts'
import { dropBranch } from '../checkout/branch-fate.ts'
import type { CheckoutKind } from '../checkout/kind.ts'
import { blockerOf } from '../checkout/restore-point/restore-branch.ts'
import { madeOn, pinsOf, unpin } from './refs.ts'

/** Only the clone's branch is added to the repository. What a restore point holds is already there. */
export const finishBranch: CheckoutKind['finishBranch'] = async (context, codebase, environment, options) => {
  const { goes, tip, pointId } = options
  const repo = repoOf(codebase)
  const own = madeOn(environment.id, await pinsOf(context, repo, environment.id))
  if (goes && tip !== undefined && own === environment.branch) await dropDelivered(context, codebase, own, tip)
  const answer =
    goes || tip === undefined
      ? { deleted: goes }
      : await deliverBranch(context, codebase, environment, { own, tip, pointId })
  await context.failpoint('remove.delivered')
  await unpin(context, repo, environment.id)
  return answer
}

/** An earlier removal delivered it before it was restored. Never drops a branch that someone else made. */
const dropDelivered = async (
  context: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  branch: string,
  tip: Sha,
): Promise<void> => {
  const repo = repoOf(codebase)
  if ((await readRef(context.git, repo, `refs/heads/${branch}`))?.sha !== tip) return
  const moves = await branchReflog(repo, branch)
  // Without a reflog, its origin is unknown.
  const isDelivered = moves.length > 0 && moves.every(({ message }) => message === delivery)
  if (isDelivered) await dropBranch(context, codebase, branch, tip)
}

/** The reflog message of a branch from a clone. */
const delivery = 'coppice: from a clone'

type Delivery = {
  /** The branch that the clone was created on; undefined if unknown. */
  readonly own: string | undefined
  readonly tip: Sha
  readonly pointId: string
}

/**
 * Moves only the branch that the clone was created on. One renamed in the clone is created under its new name, or with
 * a number if that name means something in the repository.
 */
const deliverBranch = async (
  context: Pick<IsolationContext, 'store' | 'git'>,
  codebase: Codebase,
  { branch }: IsolatedEnvironment,
  { own, tip, pointId }: Delivery,
): Promise<{ deleted: false; notices: Notice[] }> => {
  const { git } = context
  const repo = repoOf(codebase)
  const there = (await readRef(git, repo, `refs/heads/${branch}`))?.sha
  // The repository's branch is at this tip or beyond.
  if (there !== undefined && (await isAncestor(git, repo, tip, there))) return { deleted: false, notices: [] }
  const blocker = there === undefined ? blockerOf(branch, await branchNames(git, repo)) : undefined
  const isOwn = branch === own
  const isBehind = there !== undefined && isOwn && (await isAncestor(git, repo, there, tip))
  const holder = await branchCheckedOut(repo.commonDir, branch)
  const isFree = blocker === undefined && (isOwn || !(await isNameOfSomething(git, repo, branch)))
  const fits = there === undefined ? isFree : isBehind && holder === undefined
  const name = fits ? branch : await freeName(context, codebase, branch, tip)
  const from = name === branch ? there : undefined
  const made = await updateRefs(
    git,
    repo,
    [from === undefined ? { create: `refs/heads/${name}`, to: tip } : { update: `refs/heads/${name}`, to: tip, from }],
    { reason: delivery, durable: true },
  )
  if (!made.ok && (await readRef(git, repo, `refs/heads/${name}`))?.sha !== tip) {
    throw new AppError('busy', `branch ${name} could not be written: ${made.stderr.trim()}`)
  }
  const settings = (await context.store.restorePoints.get(pointId))?.contents.branchSettings
  await writeBranchSettings(git, repo, name, harmless(settings ?? [], codebase))
  if (fits && isOwn) return { deleted: false, notices: [] }
  const why: NameTaken = fits
    ? { kind: 'renamed', from: own }
    : blocker !== undefined
      ? { kind: 'blocked', by: blocker }
      : isBehind && holder !== undefined
        ? { kind: 'checked-out', holder }
        : { kind: there === undefined ? 'means-something-else' : isOwn ? 'other-commits' : 'not-its-own' }
  return { deleted: false, notices: [{ kind: 'clone-branch-kept-as', branch, name, why }] }
}

/** An agent can write the clone's configuration, so accept only the repository's own remote as upstream. */
const harmless = (settings: BranchSettings, { remote }: Codebase): BranchSettings => {
  const upstream = settings.filter(
    ([variable, value]) =>
      (variable === 'remote' && value === remote) || (variable === 'merge' && value.startsWith('refs/heads/')),
  )
  const isUpstream = new Set(upstream.map(([variable]) => variable)).size === 2
  return [...(isUpstream ? upstream : []), ...settings.filter(([variable]) => variable === 'description')]
}

const freeName = async (
  { git }: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  branch: BranchName,
  tip: Sha,
): Promise<BranchName> => {
  const repo = repoOf(codebase)
  const names = await branchNames(git, repo)
  // If a branch `a` exists, no name below `a/` is free.
  const plain = names.some((name) => branch.startsWith(`${name}/`)) ? branch.replaceAll('/', '-') : branch
  for (let n = 2; ; n += 1) {
    const name = `${plain}-${n}`
    const isThere = names.includes(name)
    // Written before a crash.
    if (isThere && (await readRef(git, repo, `refs/heads/${name}`))?.sha === tip) return toBranchName(name)
    if (isThere || blockerOf(name, names) !== undefined) continue
    if (!(await isNameOfSomething(git, repo, name))) return toBranchName(name)
  }
}

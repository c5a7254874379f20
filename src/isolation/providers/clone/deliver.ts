import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import { AppError } from '../../../domain/errors.ts'
import { type BranchName, type Sha, toBranchName } from '../../../domain/names.ts'
import type { Tree } from '../../../domain/tree.ts'
import { branchCheckedOut } from '../../../git/admin-dir.ts'
import { branchMoves } from '../../../git/branch-log.ts'
import { isAncestor } from '../../../git/history.ts'
import { branchNames, listRefs, readRef, type Ref, updateRefs } from '../../../git/refs.ts'
import { writeBranchSettings } from '../../../git/upstream.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import type { IsolationContext } from '../../context.ts'
import { readRemovalData } from '../../../domain/journal-data.ts'
import type { Unreachable } from '../../../domain/removal/unreachable.ts'
import { dropBranch } from '../checkout/branch-fate.ts'
import type { CheckoutKind } from '../checkout/kind.ts'
import { detachedCommits } from '../checkout/look/unreachable.ts'
import { blockerOf } from '../checkout/restore-point/restore-branch.ts'
import { unpin } from './refs.ts'

export type Delivery = { readonly name: string; readonly sha: Sha }

export type DeliveryPlan = {
  /** Branches, tags and notes beside its own branch that the repository gets when the clone goes. */
  readonly refs: readonly Delivery[]
  /** What the repository cannot get under its own name. */
  readonly stays: readonly Unreachable[]
}

/** Of a worktree, the branches and tags that somebody makes in it are the repository's. A clone's become so when it goes. */
export const planDelivery = async (
  context: IsolationContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  tree: Tree,
): Promise<DeliveryPlan> => {
  const { git } = context
  const repo = repoOf(codebase)
  const own = (await listRefs(git, tree, ['refs/'])).filter((ref) => isItsOwn(ref, environment))
  const theirs = new Map((await listRefs(git, repo, ['refs/'])).map((ref) => [ref.name, ref.sha]))
  const taken = [...theirs.keys()]
  const refs: Delivery[] = []
  const stays: Unreachable[] = []
  const lost = await detachedCommits(context, tree)
  if (lost > 0) stays.push({ kind: 'detached-head', commits: lost })
  for (const ref of own) {
    if (theirs.get(ref.name) === ref.sha) continue
    const isDeliverable = /^refs\/(?:heads|tags|notes)\//.test(ref.name)
    const isFree = !theirs.has(ref.name) && blockerOf(ref.name, taken) === undefined
    if (isDeliverable && isFree) refs.push({ name: ref.name, sha: ref.sha })
    else if (!(await isHeld(context, tree, ref, theirs)))
      stays.push({ kind: 'clone-ref', ref: ref.name, path: tree.path, repository: repo.commonDir })
  }
  return { refs, stays }
}

const isItsOwn = ({ name, target }: Ref, { branch }: IsolatedEnvironment): boolean =>
  target === undefined && !/^refs\/(?:remotes|coppice)\//.test(name) && name !== `refs/heads/${branch}`

/** The repository reaches it from a branch, tag or remote-tracking ref of its own, or the clone has pushed it. */
const isHeld = async (
  { git }: IsolationContext,
  tree: Tree,
  { sha }: Ref,
  theirs: ReadonlyMap<string, Sha>,
): Promise<boolean> => {
  const known = [...theirs].filter(([name]) => /^refs\/(?:heads|tags|remotes)\//.test(name)).map(([, one]) => one)
  const args = ['rev-list', '--count', '--stdin', '--not', '--remotes', '--']
  const stdin = [sha, ...known.map((one) => `^${one}`)].map((line) => `${line}\n`).join('')
  const { stdout } = await git.run({ operation: 'rev-list', at: tree, args, stdin })
  return Number(stdout.trim()) === 0
}

/** Everything that the clone had under its own names, then its branch. What a restore point holds is in the repository. */
export const settleBranch: CheckoutKind['settleBranch'] = async (context, codebase, environment, options) => {
  const { goes, tip, pointId } = options
  const repo = repoOf(codebase)
  const notices: string[] = []
  const entry = await context.store.journal.get(pointId)
  for (const { name, sha } of entry === undefined ? [] : (readRemovalData(entry).deliver ?? [])) {
    const made = await updateRefs(context.git, repo, [{ create: name, to: sha }], { reason: delivered })
    const now = made.ok ? sha : (await readRef(context.git, repo, name))?.sha
    if (now !== sha) notices.push(`${name} of the clone was not brought back: the name was taken meanwhile`)
    else notices.push(`${name} of the clone is in the repository now`)
  }
  await context.failpoint('remove.delivered')
  if (goes && tip !== undefined) await dropDelivered(context, codebase, environment, tip)
  const answer =
    goes || tip === undefined ? { deleted: goes } : await deliverBranch(context, codebase, environment, tip, pointId)
  await unpin(context, repo, environment.id)
  return { ...answer, notices: [...notices, ...('notices' in answer ? answer.notices : [])] }
}

/** An earlier removal delivered it, and it was restored since. A branch that somebody else made is theirs. */
const dropDelivered = async (
  context: IsolationContext,
  codebase: Codebase,
  { branch }: IsolatedEnvironment,
  tip: Sha,
): Promise<void> => {
  const repo = repoOf(codebase)
  if ((await readRef(context.git, repo, `refs/heads/${branch}`))?.sha !== tip) return
  const moves = await branchMoves(repo, branch)
  if (moves.every(({ message }) => message === delivered)) await dropBranch(context, codebase, branch, tip)
}

/** In the reflog of a branch that came from a clone. */
const delivered = 'coppice: from a clone'

const deliverBranch = async (
  context: IsolationContext,
  codebase: Codebase,
  { branch }: IsolatedEnvironment,
  tip: Sha,
  pointId: string,
): Promise<{ deleted: false; notices: string[] }> => {
  const { git } = context
  const repo = repoOf(codebase)
  const there = (await readRef(git, repo, `refs/heads/${branch}`))?.sha
  if (there === tip) return { deleted: false, notices: [] }
  const isBehind = there !== undefined && (await isAncestor(git, repo, there, tip))
  const isFree = (await branchCheckedOut(repo.commonDir, branch)) === undefined
  const name = there === undefined || (isBehind && isFree) ? branch : await freeName(context, codebase, branch, tip)
  const from = name === branch ? there : undefined
  const made = await updateRefs(
    git,
    repo,
    [from === undefined ? { create: `refs/heads/${name}`, to: tip } : { update: `refs/heads/${name}`, to: tip, from }],
    { reason: delivered, durable: true },
  )
  if (!made.ok && (await readRef(git, repo, `refs/heads/${name}`))?.sha !== tip) {
    throw new AppError('busy', `branch ${name} could not be written: ${made.stderr.trim()}`)
  }
  const settings = (await context.store.restorePoints.get(pointId))?.contents.branchSettings
  if (settings !== undefined) await writeBranchSettings(git, repo, name, settings)
  if (name === branch) return { deleted: false, notices: [] }
  const why = isFree ? 'has other commits' : 'is checked out elsewhere'
  return { deleted: false, notices: [`${branch} ${why} in the repository: the clone's is kept as ${name}`] }
}

const freeName = async (
  { git }: IsolationContext,
  codebase: Codebase,
  branch: BranchName,
  tip: Sha,
): Promise<BranchName> => {
  const repo = repoOf(codebase)
  const names = await branchNames(git, repo)
  for (let n = 2; ; n += 1) {
    const name = `${branch}-${n}`
    // A crash may have come after it was written.
    if ((await readRef(git, repo, `refs/heads/${name}`))?.sha === tip) return toBranchName(name)
    if (!names.includes(name) && blockerOf(name, names) === undefined) return toBranchName(name)
  }
}

/** Commits that only a branch which is gone from the clone had are in its reflog, and a restore point keeps those. */
export const unreachable: CheckoutKind['unreachable'] = async (context, codebase, environment, tree) => [
  ...(await planDelivery(context, codebase, environment, tree)).stays,
]

import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import { AppError } from '../../../domain/errors.ts'
import { type BranchName, type Sha, toBranchName } from '../../../domain/names.ts'
import type { NameTaken, Notice } from '../../../domain/notice.ts'
import type { Tree } from '../../../domain/tree.ts'
import { branchCheckedOut, readAdminDirs } from '../../../git/admin-dir.ts'
import { branchReflog } from '../../../git/reflog.ts'
import { isAncestor } from '../../../git/history.ts'
import { branchNames, listRefs, readRef, type Ref, updateRefs } from '../../../git/refs.ts'
import { writeBranchSettings } from '../../../git/upstream.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import type { IsolationContext } from '../../context.ts'
import { readRemovalData } from '../../../domain/journal-data.ts'
import type { Unreachable } from '../../../domain/removal/unreachable.ts'
import { dropBranch } from '../checkout/branch-fate.ts'
import type { CheckoutKind } from '../checkout/kind.ts'
import { unreachableCommits } from '../checkout/look/unreachable.ts'
import { blockerOf } from '../checkout/restore-point/restore-branch.ts'
import { unpin } from './refs.ts'
import { refsOfClone } from './tips.ts'

export type Delivery = { readonly name: string; readonly sha: Sha }

export type DeliveryPlan = {
  /** Branches, tags and notes beside its own branch that the repository gets when the clone goes. */
  readonly refs: readonly Delivery[]
  /** What the repository cannot get under its own name. */
  readonly stays: readonly Unreachable[]
}

/** Of a worktree, the branches and tags that somebody makes in it are the repository's. A clone's become so when it goes. */
export const planDelivery = async (
  context: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  tree: Tree,
): Promise<DeliveryPlan> => {
  const repo = repoOf(codebase)
  const all = await refsOfClone(context.git, tree)
  const theirs = new Map((await listRefs(context.git, repo, ['refs/'])).map((ref) => [ref.name, ref.sha]))
  const isBlocked = beside(theirs.keys())
  const own = all.filter((ref) => isItsOwn(ref, environment) && theirs.get(ref.name) !== ref.sha)
  const isFree = ({ name }: Ref): boolean => !theirs.has(name) && !isBlocked(name)
  const refs = own.filter((ref) => isDeliverable(ref) && isFree(ref))
  const others = own.filter((ref) => !(isDeliverable(ref) && isFree(ref)))
  const tip = all.find(({ name }) => name === `refs/heads/${environment.branch}`)?.sha
  const lost = await onlyInClone(context, tree, others, {
    // Each of these is in the repository when the clone is gone.
    shas: [...(tip === undefined ? [] : [tip]), ...refs.map(({ sha }) => sha)],
    theirs,
  })
  return {
    refs: refs.map(({ name, sha }) => ({ name, sha })),
    stays: lost.map(({ name }) => ({ kind: 'clone-ref', ref: name, path: tree.path, repository: repo.commonDir })),
  }
}

const isItsOwn = ({ name, target }: Ref, { branch }: IsolatedEnvironment): boolean =>
  target === undefined && !/^refs\/(?:remotes|coppice)\//.test(name) && name !== `refs/heads/${branch}`

/** As `blockerOf`, for many names. */
const beside = (taken: Iterable<string>): ((name: string) => boolean) => {
  const names = new Set(taken)
  const above = (name: string): string[] =>
    [...name.matchAll(/\//g)].map(({ index }) => name.slice(0, index)).filter((one) => one !== 'refs')
  const directories = new Set([...names].flatMap(above))
  return (name) => directories.has(name) || above(name).some((one) => names.has(one))
}

/** Git makes no branch of what is not a commit, whoever wrote such a ref. */
const isDeliverable = ({ name, committerDate }: Ref): boolean =>
  /^refs\/(?:tags|notes)\//.test(name) || (name.startsWith('refs/heads/') && committerDate !== undefined)

/** Those whose commits neither the repository nor a remote has. What is not a commit has to be there under some name. */
const onlyInClone = async (
  { git }: Pick<IsolationContext, 'git'>,
  tree: Tree,
  refs: readonly Ref[],
  { shas, theirs }: { readonly shas: readonly Sha[]; readonly theirs: ReadonlyMap<string, Sha> },
): Promise<Ref[]> => {
  if (refs.length === 0) return []
  const known = [...theirs].filter(([name]) => /^refs\/(?:heads|tags|remotes)\//.test(name)).map(([, sha]) => sha)
  const held = new Set<string>([...known, ...shas])
  const commits = refs.filter(({ committerDate }) => committerDate !== undefined).map(({ sha }) => sha)
  const args = ['rev-list', '--stdin', '--not', '--remotes', '--']
  const stdin = [...commits, ...[...held].map((sha) => `^${sha}`)].map((line) => `${line}\n`).join('')
  const lost = new Set((await git.run({ operation: 'rev-list', at: tree, args, stdin })).stdout.split('\n'))
  return refs.filter(({ sha, committerDate }) => (committerDate === undefined ? !held.has(sha) : lost.has(sha)))
}

/** Everything that the clone had under its own names, then its branch. What a restore point holds is in the repository. */
export const settleBranch: CheckoutKind['settleBranch'] = async (context, codebase, environment, options) => {
  const { goes, tip, pointId } = options
  const entry = await context.store.journal.get(pointId)
  const delivered = await deliver(context, codebase, (entry && readRemovalData(entry).deliver) ?? [])
  await context.failpoint('remove.delivered')
  if (goes && tip !== undefined) await dropDelivered(context, codebase, environment, tip)
  const answer =
    goes || tip === undefined ? { deleted: goes } : await deliverBranch(context, codebase, environment, tip, pointId)
  await unpin(context, repoOf(codebase), environment.id)
  return { ...answer, notices: [...delivered, ...('notices' in answer ? answer.notices : [])] }
}

/** In one go: a clone may have fetched thousands of tags. One by one only where somebody has taken a name meanwhile. */
const deliver = async (
  { git }: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  refs: readonly Delivery[],
): Promise<Notice[]> => {
  const repo = repoOf(codebase)
  // After a crash some of them are there already.
  const there = new Map((await listRefs(git, repo, ['refs/'])).map(({ name, sha }) => [name, sha]))
  const missing = refs.filter(({ name }) => !there.has(name))
  const create = (ones: readonly Delivery[]) =>
    updateRefs(
      git,
      repo,
      ones.map(({ name, sha }) => ({ create: name, to: sha })),
      { reason: delivery },
    )
  const failed = new Set(refs.filter(({ name, sha }) => there.has(name) && there.get(name) !== sha))
  if (missing.length > 0 && !(await create(missing)).ok) {
    for (const ref of missing) if (!(await create([ref])).ok) failed.add(ref)
  }
  const brought = refs.filter((ref) => !failed.has(ref)).map(({ name }) => name)
  return [
    ...(brought.length > 0 ? [{ kind: 'refs-delivered', refs: brought } as const] : []),
    ...(failed.size > 0 ? [{ kind: 'refs-not-delivered', refs: [...failed].map(({ name }) => name) } as const] : []),
  ]
}

/** An earlier removal delivered it, and it was restored since. A branch that somebody else made is theirs. */
const dropDelivered = async (
  context: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  { branch }: IsolatedEnvironment,
  tip: Sha,
): Promise<void> => {
  const repo = repoOf(codebase)
  if ((await readRef(context.git, repo, `refs/heads/${branch}`))?.sha !== tip) return
  const moves = await branchReflog(repo, branch)
  if (moves.every(({ message }) => message === delivery)) await dropBranch(context, codebase, branch, tip)
}

/** In the reflog of a branch that came from a clone. */
const delivery = 'coppice: from a clone'

const deliverBranch = async (
  context: Pick<IsolationContext, 'store' | 'git'>,
  codebase: Codebase,
  { branch }: IsolatedEnvironment,
  tip: Sha,
  pointId: string,
): Promise<{ deleted: false; notices: Notice[] }> => {
  const { git } = context
  const repo = repoOf(codebase)
  const there = (await readRef(git, repo, `refs/heads/${branch}`))?.sha
  // The repository's is where the clone's is, or further.
  if (there !== undefined && (await isAncestor(git, repo, tip, there))) return { deleted: false, notices: [] }
  const blocker = there === undefined ? blockerOf(branch, await branchNames(git, repo)) : undefined
  const isBehind = there !== undefined && (await isAncestor(git, repo, there, tip))
  const holder = await branchCheckedOut(repo.commonDir, branch)
  const fits = there === undefined ? blocker === undefined : isBehind && holder === undefined
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
  if (settings !== undefined) await writeBranchSettings(git, repo, name, settings)
  if (name === branch) return { deleted: false, notices: [] }
  const why: NameTaken =
    blocker !== undefined
      ? { kind: 'blocked', by: blocker }
      : isBehind && holder !== undefined
        ? { kind: 'checked-out', holder }
        : { kind: 'other-commits' }
  return { deleted: false, notices: [{ kind: 'clone-branch-kept-as', branch, name, why }] }
}

const freeName = async (
  { git }: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  branch: BranchName,
  tip: Sha,
): Promise<BranchName> => {
  const repo = repoOf(codebase)
  const names = await branchNames(git, repo)
  // Below a branch that took its directory no name is free.
  const plain = names.some((name) => branch.startsWith(`${name}/`)) ? branch.replaceAll('/', '-') : branch
  for (let n = 2; ; n += 1) {
    const name = `${plain}-${n}`
    const isThere = names.includes(name)
    // A crash may have come after it was written.
    if (isThere && (await readRef(git, repo, `refs/heads/${name}`))?.sha === tip) return toBranchName(name)
    if (!isThere && blockerOf(name, names) === undefined) return toBranchName(name)
  }
}

/**
 * What neither the repository nor a remote has once the clone is gone. Commits that only a branch which is gone from the
 * clone had are in its reflog, and a restore point keeps those.
 */
export const unreachable: CheckoutKind['unreachable'] = async (context, codebase, environment, tree) => {
  const worktrees = (await readAdminDirs(tree.commonDir)).map((one) => ({
    path: one.worktreePath,
    isLocked: one.lockReason !== undefined,
  }))
  return [
    // Its own refs, also those that a worktree would have for itself, are asked about below.
    ...(await unreachableCommits(context, tree)).filter(({ kind }) => kind !== 'own-ref'),
    ...(await planDelivery(context, codebase, environment, tree)).stays,
    ...(worktrees.length > 0 ? [{ kind: 'clone-worktrees', path: tree.path, worktrees } as const] : []),
  ]
}

import { repoOf } from '../../codebases/repo-of.ts'
import type { BranchOrigin, Codebase } from '../../../domain/environment.ts'
import { AppError } from '../../../domain/errors.ts'
import { type BranchName, isSha, type Sha, toBranchName } from '../../../domain/names.ts'
import type { Notice } from '../../../domain/notice.ts'
import type { Doubt, Trust } from '../../../domain/trust.ts'
import { branchForWork } from '../../../domain/work.ts'
import { shellWord } from '../../../domain/text/shell-word.ts'
import { branchCheckedOut } from '../../../git/admin-dir.ts'
import type { Repo } from '../../../git/door.ts'
import { isAncestor } from '../../../git/history.ts'
import { isAbsentRef } from '../../../git/ref-file.ts'
import { readRefs, resolveCommit } from '../../../git/refs.ts'
import type { BranchSettings } from '../../../git/upstream.ts'
import { contentTrust } from './content-trust.ts'
import type { IsolationContext } from '../../context.ts'
import { copiedRecords } from '../../codebases/copied-records.ts'
import type { CreateRequest } from '../../provider.ts'
import { fetchBranch, fetchPullRequestHead, prNotFound } from '../../codebases/fetch-pull-request.ts'
import { coppice, type Remedy, remedy, shell } from '../../../domain/remedy.ts'

/** What git has to do for one request, decided before anything changes. */
export type Plan = {
  readonly repo: Repo
  readonly branch: BranchName
  readonly origin: BranchOrigin
  /** The commit to check out. */
  readonly at: Sha
  /** Where the branch's own commits begin; undefined if it existed before us. */
  readonly start: Sha | undefined
  /** Fast-forward a local branch that is merely behind first. */
  readonly fastForward?: { readonly from: Sha; readonly to: Sha }
  readonly upstream?: { readonly remote: string; readonly branch: string }
  /** The settings of a restored branch, including its upstream. */
  readonly branchSettings?: BranchSettings
  readonly trust: Trust
  /** Why it counts as a fork's although it wasn't declared one. */
  readonly doubt?: Doubt | undefined
  readonly prNumber: number | undefined
  readonly prBranch: string | undefined
  readonly notices: readonly Notice[]
}

export const planCreation = async (context: IsolationContext, request: CreateRequest): Promise<Plan> => {
  const { work } = request
  if (work.type === 'review' || work.type === 'pr') return planPullRequest(context, request)
  const branch = request.branch ?? branchForWork(work, context.clock())
  return planBranch(context, request, branch)
}

/** issue, task, thread, agent: a new branch from base. An existing branch is used as is, never reset. */
const planBranch = async (
  context: IsolationContext,
  { codebase, base, baseNamed, signal }: CreateRequest,
  branch: BranchName,
): Promise<Plan> => {
  const plain = { repo: repoOf(codebase), branch, prNumber: undefined, prBranch: undefined }
  const { local, tracking } = await branchTips(context, codebase, branch)
  if (local !== undefined) {
    await assertNotCheckedOut(codebase, branch)
    const notices: Notice[] = !baseNamed ? [] : [{ kind: 'base-ignored', branch }]
    const judged = await contentTrust(context, codebase, { tip: local, branch }, { signal })
    return { ...plain, ...judged, origin: 'existing', at: local, start: undefined, notices }
  }
  if (tracking !== undefined && !baseNamed && branch !== base.branch) {
    return {
      ...plain,
      // The ref may be anything that someone fetched under this name.
      ...(await contentTrust(context, codebase, { tip: tracking, branch: undefined }, { signal })),
      origin: 'created',
      at: tracking,
      start: tracking,
      notices: [{ kind: 'remote-branch-continued', branch, remote: codebase.remote ?? '' }],
    }
  }
  // `--base` may name a stranger's commit, so trust is measured against the repository's own base.
  const judged: Pick<Plan, 'trust' | 'doubt'> = !baseNamed
    ? { trust: 'own' }
    : await contentTrust(context, codebase, { tip: base.sha, branch: undefined }, { signal })
  return { ...plain, ...judged, origin: 'created', at: base.sha, start: base.sha, notices: [] }
}

const planPullRequest = async (context: IsolationContext, request: CreateRequest): Promise<Plan> => {
  const { codebase, work, hints } = request
  const number = Number(work.id)
  const remote = codebase.remote
  if (remote === undefined) {
    throw new AppError('pr-not-found', `${codebase.name} has no remote, so PR #${number} can't be fetched`, {
      remedy: remedy`add one with ${shell('git remote add origin <url>')}`,
    })
  }
  if (hints.prBranch === undefined || hints.isForkPR === true || work.type === 'review') {
    return planReview(context, request, remote, number)
  }
  const plan = await planOwnBranch(context, request, remote, number, toBranchName(hints.prBranch))
  return { ...plan, notices: [...plan.notices, ...(await headNotices(context, request, plan))] }
}

/** Which commit of the pull request is checked out; both, if a local branch has more than the head that was named. */
const headNotices = async (
  { git }: Pick<IsolationContext, 'git'>,
  { codebase, work, hints: { prSha, prBranch } }: CreateRequest,
  { at, origin, fastForward, notices }: Plan,
): Promise<Notice[]> => {
  if (prSha === undefined || !isSha(prSha) || notices.some(({ kind }) => kind === 'branches-diverged')) return []
  const isLocal = origin === 'existing' && fastForward === undefined && at !== prSha
  const repo = repoOf(codebase)
  const isKnown = isLocal && (await resolveCommit(git, repo, prSha)) !== undefined
  if (!isKnown || !(await isAncestor(git, repo, prSha, at))) return [{ kind: 'reviewing', commit: at, prBranch }]
  const why = { kind: 'own-commits' } as const
  return [{ kind: 'head-not-followed', prNumber: Number(work.id), head: prSha, at, why }]
}

/** PR of the same repository: its own branch with upstream, so that a push updates the PR. */
const planOwnBranch = async (
  context: IsolationContext,
  request: CreateRequest,
  remote: string,
  number: number,
  prBranch: BranchName,
): Promise<Plan> => {
  const { codebase, signal } = request
  const fetched = await fetchBranch(context, codebase, remote, { number, branch: prBranch }, { signal })
  const tips = await branchTips(context, codebase, prBranch)
  const { local } = tips
  const tracking = fetched.sha ?? tips.tracking
  const { notices } = fetched
  const plain = {
    repo: repoOf(codebase),
    prNumber: number,
    prBranch,
    upstream: { remote, branch: prBranch },
  }
  const judge = (at: Sha, branch: BranchName | undefined): Promise<Pick<Plan, 'trust' | 'doubt'>> =>
    pullRequestTrust(context, request, { at, branch, fetched: fetched.sha })
  const tip = tracking ?? local
  if (tip === undefined) throw prNotFound(number, `branch ${prBranch} is not on ${remote}`, fetched.problem)
  const holder = await branchCheckedOut(codebase.repoPath, prBranch)
  // Never take the main working tree's branch: use a separate branch that pushes to the PR's.
  if (holder !== undefined) {
    const branch = toBranchName(`pr-${number}`)
    const own = await branchTips(context, codebase, branch)
    if (own.local !== undefined) await assertNotCheckedOut(codebase, branch)
    return {
      ...plain,
      ...(await judge(own.local ?? tip, own.local === undefined ? undefined : branch)),
      branch,
      origin: own.local === undefined ? 'created' : 'existing',
      at: own.local ?? tip,
      start: own.local === undefined ? tip : undefined,
      notices: [...notices, { kind: 'pr-branch-checked-out', prBranch, holder, branch }],
    }
  }
  if (local === undefined) {
    const judged = await judge(tip, undefined)
    return { ...plain, ...judged, branch: prBranch, origin: 'created', at: tip, start: tip, notices }
  }
  const met = await meet(context, codebase, local, tracking, prBranch, notices)
  const judged = await judge(met.at, prBranch)
  return { ...plain, ...judged, branch: prBranch, origin: 'existing', start: undefined, ...met }
}

/**
 * The remote's branch as just fetched is the repository's own; so is the commit that the forge named for a pull request
 * of the same repository. A local branch may hold anything.
 */
const pullRequestTrust = async (
  context: IsolationContext,
  { codebase, hints, doubt, signal }: CreateRequest,
  { at, branch, fetched }: { at: Sha; branch: BranchName | undefined; fetched: Sha | undefined },
): Promise<Pick<Plan, 'trust' | 'doubt'>> => {
  if (at === fetched || (hints.isForkPR === false && at === hints.prSha)) return { trust: 'own' }
  const judged = await contentTrust(context, codebase, { tip: at, branch }, { signal })
  return { ...judged, doubt: judged.doubt ?? doubt }
}

/** Fast-forwards a local branch that is behind; leaves one that has diverged alone and names it. */
const meet = async (
  context: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  local: Sha,
  tracking: Sha | undefined,
  branch: BranchName,
  notices: readonly Notice[],
): Promise<Pick<Plan, 'at' | 'fastForward' | 'notices'>> => {
  const repo = repoOf(codebase)
  if (tracking === undefined || tracking === local || (await isAncestor(context.git, repo, tracking, local))) {
    return { at: local, notices }
  }
  if (await isAncestor(context.git, repo, local, tracking)) {
    return { at: tracking, fastForward: { from: local, to: tracking }, notices }
  }
  const diverged = { kind: 'branches-diverged', branch, local, remote: codebase.remote ?? '', tracking } as const
  return { at: local, notices: [...notices, diverged] }
}

/** A fork's PR, or a review: the PR's head, at exactly the given SHA. */
const planReview = async (
  context: Pick<IsolationContext, 'git' | 'progress'>,
  { codebase, hints, doubt, signal }: CreateRequest,
  remote: string,
  number: number,
): Promise<Plan> => {
  const branch = toBranchName(`pr-${number}-review`)
  const head = await fetchPullRequestHead(context, codebase, remote, number, hints.prSha, { signal })
  const existing = (await branchTips(context, codebase, branch)).local
  if (existing !== undefined) await assertNotCheckedOut(codebase, branch)
  if (head.sha === undefined && existing === undefined)
    throw prNotFound(number, `its head is not on ${remote}`, head.problem)
  const at = existing ?? head.sha ?? missing()
  return {
    repo: repoOf(codebase),
    branch,
    origin: existing === undefined ? 'created' : 'existing',
    at,
    start: existing === undefined ? at : undefined,
    trust: 'unproven',
    doubt,
    prNumber: number,
    prBranch: hints.prBranch,
    notices: [
      ...(head.problem === undefined
        ? []
        : [{ kind: 'not-fetched', of: { pullRequest: number }, why: head.problem } as const]),
      { kind: 'reviewing', commit: at, prBranch: hints.prBranch },
    ],
  }
}

const missing = (): never => {
  throw new AppError('unexpected', 'a pull request without a head was planned')
}

const branchTips = async (
  context: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  branch: BranchName,
): Promise<{ local: Sha | undefined; tracking: Sha | undefined }> => {
  const local = `refs/heads/${branch}`
  const tracking = `refs/remotes/${codebase.remote ?? 'origin'}/${branch}`
  // Most branches are new, and starting git to learn that takes a twentieth of a creation.
  const { commonDir } = repoOf(codebase)
  if ((await isAbsentRef(commonDir, local)) && (await isAbsentRef(commonDir, tracking))) {
    return { local: undefined, tracking: undefined }
  }
  const refs = await readRefs(context.git, repoOf(codebase), [local, tracking])
  return { local: refs.get(local)?.sha, tracking: codebase.remote === undefined ? undefined : refs.get(tracking)?.sha }
}

const assertNotCheckedOut = async (codebase: Codebase, branch: BranchName): Promise<void> => {
  const holder = await branchCheckedOut(codebase.repoPath, branch)
  if (holder === undefined) return
  throw new AppError('branch-in-use', `branch ${branch} is checked out in ${holder}`, {
    remedy: await wayToFree(codebase, holder),
  })
}

const wayToFree = async (codebase: Codebase, holder: string): Promise<Remedy> => {
  if (holder === codebase.checkoutPath) return 'switch that checkout to another branch, or choose another name'
  const copied = (await copiedRecords(codebase)).some(({ worktreePath }) => worktreePath === holder)
  return copied
    ? remedy`that is a worktree of the repository that this one was copied from: ${coppice('doctor')} names the record to delete`
    : remedy`track it with ${coppice(`worktree adopt ${shellWord(holder)}`)}, or choose another name`
}

/*
 * Publishing: pushes an environment's branch with the server's credentials and opens a pull request for it. In: an
 * environment. Out: what was pushed and opened, or why not. Calling it again is safe: it ends in the same state.
 */
import { compareUrl } from '../../domain/forge/compare-url.ts'
import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import type { NotPublished, OpenedPullRequest, PullRequest } from '../../domain/forge/publishing.ts'
import { coppice, remedy } from '../../domain/remedy.ts'
import type { UncommittedWork } from '../../domain/removal/uncommitted.ts'
import { isTrusted } from '../../domain/trust.ts'
import type { Sha } from '../../domain/names.ts'
import { toWork, type Work } from '../../domain/work.ts'
import type { Base } from '../codebases/base-branch.ts'
import { baseAndConfig } from '../codebases/base-and-config.ts'
import { baseOfEnvironment } from '../codebases/environment-base.ts'
import {
  type BranchPush,
  type BranchWork,
  branchWork,
  fetchBranch,
  pushBranch,
  pushTarget,
  remoteTip,
  whyNoTarget,
} from '../codebases/push-branch.ts'
import type { IsolationContext, Provider } from '../context.ts'
import { broughtTips, followRenames, presenceOf, providerOf } from '../provider-of.ts'
import { claimWork } from '../resolve/links.ts'
import { pullRequestText, titleLine } from './texts.ts'

export type PublishRequest = {
  /** Undefined: from the commits. */
  readonly title?: string | undefined
  /** Issues that it closes, in addition to those of the environment. */
  readonly fixes?: readonly number[]
  /** How the work was checked, in addition to what its commits say. */
  readonly checked?: readonly string[]
  /** Not as a draft. */
  readonly ready?: boolean
  readonly signal?: AbortSignal | undefined
}

export type Publication =
  | { readonly outcome: 'not-published'; readonly environment: IsolatedEnvironment; readonly why: NotPublished }
  | Published

export type Published = {
  readonly outcome: 'published'
  readonly environment: IsolatedEnvironment
  readonly remote: string
  /** Its name on the remote. */
  readonly branch: string
  readonly base: string
  readonly change: 'new' | 'updated' | 'none'
  /** How many commits base doesn't have. */
  readonly commits: number
  /** Files that are not committed, and so were not pushed. */
  readonly uncommitted: number
  readonly opened: OpenedPullRequest
  /** Where a person can open the pull request; undefined if there is one, or the host is unknown. */
  readonly compareUrl: string | undefined
  /** The pull request's messages go to another environment, which had it before. */
  readonly foundIn: IsolatedEnvironment | undefined
}

export const publish = async (
  context: IsolationContext,
  codebase: Codebase,
  given: IsolatedEnvironment,
  request: PublishRequest = {},
): Promise<Publication> => {
  const ready = await readyToPush(context, codebase, given, request)
  if ('kind' in ready) return notPublished(given, ready)
  const { environment, remote, branch, base, work, uncommitted } = ready
  const pushed = await push(context, codebase, ready, request)
  if ('kind' in pushed) return notPublished(environment, pushed)
  const opened = await open(context, codebase, ready, request)
  const isOpen = opened.outcome === 'opened' || opened.outcome === 'exists'
  return {
    outcome: 'published',
    environment,
    remote,
    branch,
    base,
    change: pushed.change,
    commits: work.commits,
    uncommitted,
    opened,
    compareUrl: isOpen ? undefined : compareUrl(codebase.remoteUrl, { base, branch }),
    foundIn: isOpen ? await remember(context, codebase, environment, opened.pullRequest) : undefined,
  }
}

export type PushedEnvironment = {
  readonly outcome: 'pushed'
  readonly environment: IsolatedEnvironment
  readonly remote: string
  /** Its name on the remote. */
  readonly branch: string
  readonly commit: Sha
}

/** Only the push. Afterwards the remote itself is asked what it has: a server can say yes and mean something else. */
export const pushEnvironment = async (
  context: IsolationContext,
  codebase: Codebase,
  given: IsolatedEnvironment,
  request: Pick<PublishRequest, 'signal'> = {},
): Promise<PushedEnvironment | Extract<Publication, { outcome: 'not-published' }>> => {
  const ready = await readyToPush(context, codebase, given, request)
  if ('kind' in ready) return notPublished(given, ready)
  const { environment, remote, branch, work } = ready
  const pushed = await push(context, codebase, ready, request)
  if ('kind' in pushed) return notPublished(environment, pushed)
  const there = await remoteTip(context, codebase, ready, request)
  if (there === work.tip) return { outcome: 'pushed', environment, remote, branch, commit: work.tip }
  return notPublished(environment, { kind: 'not-there', branch, found: there })
}

const push = async (
  context: IsolationContext,
  codebase: Codebase,
  ready: Ready,
  request: PublishRequest,
): Promise<{ readonly change: 'new' | 'updated' | 'none' } | NotPublished> => {
  const { address, remote, branch, work } = ready
  const { signal } = request
  const pushed = await pushBranch(context, codebase, { address, remote, branch, commit: work.tip }, { signal })
  if (pushed.outcome === 'rejected') {
    const fetched = pushed.why === 'behind' && (await canBeMerged(context, codebase, ready, request))
    return { kind: 'rejected', why: pushed.why, said: pushed.said, fetched }
  }
  return pushed.outcome === 'pushed' ? pushed : { kind: pushed.outcome, said: pushed.said }
}

const notPublished = (
  environment: IsolatedEnvironment,
  why: NotPublished,
): Extract<Publication, { outcome: 'not-published' }> => ({
  outcome: 'not-published',
  environment,
  why,
})

type Ready = {
  readonly environment: IsolatedEnvironment
  readonly provider: Provider
  readonly address: BranchPush['address']
  readonly remote: string
  readonly branch: string
  readonly base: string
  readonly work: BranchWork
  readonly uncommitted: number
}

/** Only checks: nothing is changed yet. */
const readyToPush = async (
  context: IsolationContext,
  codebase: Codebase,
  given: IsolatedEnvironment,
  { signal }: PublishRequest,
): Promise<Ready | NotPublished> => {
  const { remote } = codebase
  if (remote === undefined) return whyNoTarget(context, codebase)
  const presence = await presenceOf(context, codebase, given)
  if (presence.state !== 'present') throw notThere(given, presence.state === 'missing' ? undefined : presence.detail)
  const [{ environment } = { environment: given }] = await followRenames(context, codebase, [given])
  const provider = await providerOf(context, environment)
  const { trust } = environment
  const isOurs =
    isTrusted(trust) && (trust === 'own' || (await provider.isVouched(context, codebase, environment, { signal })))
  if (!isOurs) return { kind: 'untrusted', trust }
  const head = await provider.headBranch(presence.tree)
  if (head !== environment.branch) return { kind: 'other-branch', head }
  const base = await baseOfEnvironment(context, codebase, environment)
  const usual = (await baseAndConfig(context, codebase)).base
  const branch = branchOnRemote(environment)
  if (isBase(branch, codebase, [base, usual])) return { kind: 'is-base', base: branch }
  const work = await workOf(context, codebase, environment, base, { signal })
  const { dirty } = await provider.glance(context, presence.tree, { signal })
  const uncommitted = countOf(dirty)
  const name = base.branch ?? usual.branch
  if (work.commits === 0) return { kind: 'no-commits', base: base.name, uncommitted }
  const target = await pushTarget(context, codebase, remote)
  if ('changed' in target) return { kind: 'remote-changed', ...target.changed }
  return { environment, provider, address: target.address, remote, branch, base: name ?? base.name, work, uncommitted }
}

/**
 * A pull request's own branch is updated, under whatever name it is checked out. Only if that branch is proven to be in
 * this repository: a fork's may be called `main`.
 */
const branchOnRemote = ({ work, trust, prBranch, branch }: IsolatedEnvironment): string =>
  work.type === 'pr' && trust === 'own' && prBranch !== undefined ? prBranch : branch

const isBase = (branch: string, { baseBranch }: Codebase, bases: readonly Base[]): boolean =>
  branch === baseBranch || bases.some((base) => base.branch === branch)

const workOf = async (
  context: IsolationContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  base: Base,
  options: { readonly signal: AbortSignal | undefined },
): Promise<BranchWork> => {
  const { refs, problems } = await broughtTips(context, codebase, [environment])
  const problem = problems.get(environment.id)
  const ref = refs.get(environment.id)
  const work =
    problem === undefined && ref !== undefined
      ? await branchWork(context, codebase, { ref, base: base.sha }, options)
      : undefined
  if (work !== undefined) return work
  throw notThere(environment, problem ?? `its branch ${environment.branch} is gone`)
}

/** As `git status` would count them. */
const countOf = ({ changed, untracked, hidden, submodules }: UncommittedWork): number =>
  changed + untracked + hidden + submodules

/** In a clone, the repository's refs can't be merged. */
const canBeMerged = async (
  context: IsolationContext,
  codebase: Codebase,
  { provider, environment, remote, branch }: Ready,
  { signal }: PublishRequest,
): Promise<boolean> =>
  (await fetchBranch(context, codebase, { remote, branch }, { signal })) &&
  provider.ownRepository(environment) === undefined

const open = async (
  context: IsolationContext,
  codebase: Codebase,
  { environment, branch, base, work }: Ready,
  { title, fixes: more = [], checked = [], ready = false, signal }: PublishRequest,
): Promise<OpenedPullRequest> => {
  const { forge, secrets, store } = context
  if (forge === undefined) return { outcome: 'no-forge' }
  const own = issuesOf([environment.work, ...(await store.environments.aliases(environment.id))])
  const fixes = [...new Set([...own, ...more])]
  const text = pullRequestText({ work: environment.work, branch, fixes, messages: work.messages, checked })
  const draft = {
    branch,
    base,
    title: titleLine(secrets.redact(title ?? '')) || secrets.redact(text.title),
    body: secrets.redact(text.body),
  }
  return forge.openPullRequest(codebase, { ...draft, draft: !ready }, { signal })
}

const issuesOf = (works: readonly Work[]): readonly number[] => [
  ...new Set(works.flatMap(({ type, id }) => (type === 'issue' ? [Number(id)] : []))),
]

/** A message on the pull request then finds this environment, unless another one had it first. */
const remember = async (
  context: IsolationContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  { number }: PullRequest,
): Promise<IsolatedEnvironment | undefined> => {
  const work = toWork('pr', String(number))
  await claimWork(context, codebase, environment, work)
  const holder = await context.store.environments.liveByWork(codebase.id, work)
  return holder?.id === environment.id ? undefined : holder
}

const notThere = ({ branch, path }: IsolatedEnvironment, why: string | undefined): AppError =>
  new AppError('not-found', `can't push ${branch}: ${why ?? `${path} doesn't exist`}`, {
    remedy: remedy`run ${coppice('worktree list')} to see its status`,
  })

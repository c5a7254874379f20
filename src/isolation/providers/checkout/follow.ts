import { join } from 'node:path'
import type { RepoConfig } from '../../../domain/config/repository.ts'
import { type Codebase, type IsolatedEnvironment, isForPullRequest } from '../../../domain/environment.ts'
import { toAppError } from '../../../domain/errors.ts'
import type { GateAnswer } from '../../../domain/removal/gates.ts'
import { maxLineBytes } from '../../../domain/git-link.ts'
import type { IsolationHints } from '../../../domain/hints.ts'
import { type Sha, isSha, toBranchName } from '../../../domain/names.ts'
import type { HeadNotFollowed } from '../../../domain/notice.ts'
import { shownPath } from '../../../domain/text/raw-path.ts'
import { isAboutPullRequest, type Work } from '../../../domain/work.ts'
import { branchReflog, type ReflogEntry } from '../../../git/reflog.ts'
import { followReason, hasFilesOf, moveBranch } from '../../../git/checkout.ts'
import type { CallOptions, Tree } from '../../../git/door.ts'
import { isAncestor } from '../../../git/history.ts'
import { resolveCommit } from '../../../git/refs.ts'
import { readUntrustedText } from '../../../process/files/read-untrusted.ts'
import { checkoutSettings } from './checkout-settings.ts'
import type { IsolationContext } from '../../context.ts'
import { type Dirt, readDirt } from './look/dirt.ts'
import { allPass, isUnmounted, reasonsIn, usesOf } from '../../gates.ts'
import { inTheWay } from './look/in-the-way.ts'
import { locked } from '../../lock/locked.ts'
import { presenceOf } from '../../provider-of.ts'
import type { FollowedHead } from '../../provider.ts'
import { baseAndConfig } from '../../codebases/base-and-config.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import { fetchBranch, fetchPullRequestHead } from '../../codebases/fetch-pull-request.ts'

/**
 * PR heads move. A clean tree that is behind is fast-forwarded, a review without its own commits moves to the new SHA,
 * and the user is told; anything else stays, and both SHAs are named. Overwrites and deletes only files that are in the
 * commit it leaves, and drops no commit made meanwhile. A trusted tree, which has our files and ran our setup, moves
 * only to what is on its branch of our remote; an adopted one never moves. If the head hasn't moved, no program is
 * started.
 */
export const followPullRequest = async (
  context: IsolationContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  work: Work,
  { prSha }: IsolationHints,
  { signal }: CallOptions = {},
): Promise<FollowedHead> => {
  if (!isAboutPullRequest(work) || prSha === undefined || !isSha(prSha)) return unknown
  const presence = await presenceOf(context, codebase, environment)
  if (presence.state !== 'present') return unknown
  const { tree } = presence
  const found = await headByFiles(tree, environment)
  const at = found !== undefined && isSha(found) ? { at: found } : {}
  // Another work's worktree that this pull request shares.
  if (!isForPullRequest(environment, work)) return { ...unknown, ...at }
  if (found === prSha) return { ...unmoved, ...at }
  if (!environment.owned) return { notices: [], current: await hasCommit(context, tree, prSha, { signal }), ...at }
  const followNow = async (): Promise<FollowedHead> => {
    // Someone may have vouched for it, or removed it, while this waited for the lock.
    const current = await context.store.environments.get(environment.id)
    return current?.status === 'active' ? follow(context, codebase, current, tree, prSha, { signal }) : unknown
  }
  return locked(context, codebase, `following PR #${work.id}`, followNow, signal)
}

const unmoved: FollowedHead = { notices: [], current: true }
/** No head was named, or the check failed: unknown whether this is the pull request's current code. */
const unknown: FollowedHead = { notices: [], current: false }

/** Whether the tree is at this commit or beyond. */
const hasCommit = async (
  { git }: Pick<IsolationContext, 'git'>,
  tree: Tree,
  sha: Sha,
  { signal }: CallOptions,
): Promise<boolean> => {
  const head = await resolveCommit(git, tree, 'HEAD', { signal })
  if (head === undefined || (await resolveCommit(git, tree, sha, { signal })) === undefined) return false
  return isAncestor(git, tree, sha, head, { signal })
}

const follow = async (
  context: IsolationContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  tree: Tree,
  target: Sha,
  { signal }: CallOptions,
): Promise<FollowedHead> => {
  const { git } = context
  const here = await resolveCommit(git, tree, 'HEAD', { signal })
  if (here === undefined) return unknown
  if (here === target) return { ...unmoved, at: here }
  const number = environment.prNumber ?? 0
  const left = (why: HeadNotFollowed): FollowedHead => ({
    notices: [{ kind: 'head-not-followed', prNumber: number, head: target, at: here, why }],
    current: false,
  })
  const isUntouched = await isUntouchedReview(environment, tree, here)
  let how: 'fast-forwarded' | 'rewritten'
  try {
    if (await hasCommit(context, tree, target, { signal })) {
      return { ...left({ kind: 'own-commits' }), current: true }
    }
    const refused = await bring(context, codebase, environment, target, { signal })
    if (refused !== undefined) return left(refused)
    const { config } = await baseAndConfig(context, codebase, undefined, { signal })
    const looked = await look(context, codebase, environment, tree, { config, here, target })
    if ('why' in looked) return left(looked.why)
    const isBehind = await isAncestor(git, tree, here, target, { signal })
    if (!isBehind && !isUntouched) return left({ kind: 'diverged' })
    const settings = checkoutSettings(environment.trust)
    const move = { from: here, to: target, settings }
    const lost = looked.hasTarget ? [] : await inTheWay(context, tree, looked.dirt, move)
    if (lost.length > 0) return left({ kind: 'in-the-way', paths: lost.map(shownPath) })
    // Not cancelled from here on: git killed while writing leaves half of the files.
    signal?.throwIfAborted()
    await moveBranch(git, tree, { branch: environment.branch, from: here, to: target }, { settings })
    how = isBehind ? 'fast-forwarded' : 'rewritten'
  } catch (error) {
    signal?.throwIfAborted()
    return left({ kind: 'failed', message: toAppError(error).message })
  }
  // Still a review without its own commits: it can follow the next rewrite too.
  if (isUntouched) await context.store.environments.update(environment.id, { startSha: target })
  return {
    notices: [{ kind: 'head-followed', prNumber: number, how, from: here, to: target }],
    current: true,
    at: target,
  }
}

/** Whether its files may be moved at all: the same checks as for a removal. */
const look = async (
  context: IsolationContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  tree: Tree,
  { config, here, target }: { readonly config: RepoConfig; readonly here: Sha; readonly target: Sha },
): Promise<{ readonly dirt: Dirt; readonly hasTarget: boolean } | { readonly why: HeadNotFollowed }> => {
  const why = (answers: readonly GateAnswer[]) => ({
    why: { kind: 'facts', facts: answers.flatMap(({ fact }) => fact ?? []) } as const,
  })
  // First and alone: anything else that reads the files would descend into the mounts.
  const mounts = await isUnmounted([tree.path, tree.gitDir])
  if (!allPass(mounts)) return why(mounts)
  const use = await usesOf(context, environment, tree)
  if (use.length > 0) return why(use)
  const dirt = await readDirt(context, codebase, environment, tree, config)
  if (dirt.headBranch !== environment.branch) return { why: { kind: 'other-branch', branch: dirt.headBranch } }
  if (dirt.headSha !== here) return { why: { kind: 'committed-meanwhile' } }
  // An interrupted move: the files are in place and staged. Only the branch still has to move.
  const hasTarget = dirt.changed.length > 0 && (await hasFilesOf(context.git, tree, target))
  const problems = dirt.problems.filter(({ kind }) => !hasTarget || kind !== 'changed')
  const repositories = untrackedRepositories(dirt)
  const reasons = reasonsIn(environment, { problems, worktrees: [], repositories })
  return reasons.length > 0 ? why(reasons) : { dirt, hasTarget }
}

/**
 * The move leaves repositories and worktrees inside alone unless they are in its way. One that git shows is a change.
 */
const untrackedRepositories = ({ repositories, untracked }: Dirt): Dirt['repositories'] => {
  const shown = new Set(untracked)
  return repositories.filter(({ path }) => shown.has(`${path}/`))
}

/** Fetches the commit. Returns why this tree may not have it. */
const bring = async (
  context: Pick<IsolationContext, 'git' | 'progress'>,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  target: Sha,
  options: CallOptions,
): Promise<HeadNotFollowed | undefined> => {
  const { git } = context
  const { trust, prNumber, prBranch, branch } = environment
  const remote = codebase.remote ?? 'origin'
  if (prNumber === undefined) return { kind: 'unknown-pull-request' }
  if (trust === 'own' && prBranch !== undefined) {
    const asked = { number: prNumber, branch: toBranchName(prBranch) }
    const { sha: tip } = await fetchBranch(context, codebase, remote, asked, options)
    const isThere = tip !== undefined && (await resolveCommit(git, repoOf(codebase), target, options)) !== undefined
    const isOn = isThere && (await isAncestor(git, repoOf(codebase), target, tip, options))
    return isOn ? undefined : { kind: 'not-on-branch', remote, branch: prBranch }
  }
  await fetchPullRequestHead(context, codebase, remote, prNumber, target, options)
  return trust === 'unproven' ? undefined : { kind: 'not-vouched', commit: target, branch }
}

/** A review tree that is exactly where we put it has no commits of its own. */
const isUntouchedReview = async (
  { branch, prNumber, startSha }: IsolatedEnvironment,
  tree: Tree,
  here: Sha,
): Promise<boolean> => {
  if (branch !== `pr-${prNumber}-review` || startSha === undefined) return false
  return startSha === here || isFollowedTo(await branchReflog(tree, branch).catch(() => []), startSha, here)
}

/** A crash right after a move leaves the row at the previous commit. The branch's reflog shows who moved it. */
const isFollowedTo = (moves: readonly ReflogEntry[], start: Sha, here: Sha): boolean => {
  let at: Sha | undefined = here
  for (const { from, to, message } of moves.toReversed()) {
    if (to !== at || message !== followReason) return false
    if (from === start) return true
    at = from
  }
  return false
}

/** HEAD's commit according to the loose ref; undefined (ask git) if it is packed or HEAD is elsewhere. */
const headByFiles = async (tree: Tree, environment: IsolatedEnvironment): Promise<string | undefined> => {
  try {
    const head = (await readUntrustedText(join(tree.gitDir, 'HEAD'), { maxBytes: maxLineBytes }))?.trim()
    if (head !== `ref: refs/heads/${environment.branch}`) return undefined
    return (
      await readUntrustedText(join(tree.commonDir, 'refs/heads', environment.branch), { maxBytes: maxLineBytes })
    )?.trim()
  } catch {
    return undefined
  }
}

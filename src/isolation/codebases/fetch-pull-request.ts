import type { Codebase } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import { type BranchName, type Sha, isSha } from '../../domain/names.ts'
import type { Notice } from '../../domain/notice.ts'
import type { CallOptions } from '../../git/door.ts'
import { meaningfulLine } from '../../git/failure.ts'
import { fetchRemote } from '../../git/fetch.ts'
import { resolveCommit, updateRefs } from '../../git/refs.ts'
import type { IsolationContext } from '../context.ts'
import { repoOf } from './repo-of.ts'

/** Where PR heads are kept, so that they stay reachable while their environment lives. */
export const pullRequestRef = (number: number): string => `refs/coppice/pr/${number}`

export const fetchPullRequestHead = async (
  context: Pick<IsolationContext, 'git' | 'progress'>,
  codebase: Codebase,
  remote: string,
  number: number,
  wanted: string | undefined,
  options: CallOptions = {},
): Promise<{ sha: Sha | undefined; problem: string | undefined }> => {
  const ref = pullRequestRef(number)
  const problem = await fetch(context, codebase, remote, [`+refs/pull/${number}/head:${ref}`], options)
  const repo = repoOf(codebase)
  if (wanted === undefined) return { sha: await resolveCommit(context.git, repo, ref), problem }
  if (!isSha(wanted)) {
    throw new AppError('name-invalid', `${JSON.stringify(wanted.slice(0, 80))} is not a full commit id`)
  }
  const known = await resolveCommit(context.git, repo, wanted)
  if (known !== undefined) return { sha: known, problem }
  // The head moved or was rewritten: the forge still serves the named commit by its id.
  const exact = await fetch(context, codebase, remote, [`+${wanted}:${ref}`], options)
  const sha = await resolveCommit(context.git, repo, wanted)
  if (sha === undefined) throw prNotFound(number, `${remote} doesn't have commit ${short(wanted)}`, exact ?? problem)
  return { sha, problem: undefined }
}

const fetch = async (
  context: Pick<IsolationContext, 'git' | 'progress'>,
  codebase: Codebase,
  remote: string,
  refspecs: readonly string[],
  options: CallOptions,
): Promise<string | undefined> => {
  context.progress(`fetching from ${remote}`)
  const repo = repoOf(codebase)
  const result = await fetchRemote(context.git, repo, { remote, refspecs }, options)
  return result.outcome === 'fetched' ? undefined : result.detail
}

/** Holds a PR's branch when git can't write its remote-tracking ref. */
export const pullRequestBranchRef = (number: number): string => `refs/coppice/pr-branch/${number}`

export type FetchedBranch = {
  /** Undefined if the branch doesn't exist or the remote doesn't answer. */
  readonly sha: Sha | undefined
  readonly problem: string | undefined
  readonly notices: readonly Notice[]
}

/**
 * Fetches the remote's branch into a ref of ours. The remote-tracking ref of a branch `a/b` that is gone on the remote
 * (we never prune) prevents git from writing that of `a`, and vice versa.
 */
export const fetchBranch = async (
  context: Pick<IsolationContext, 'git' | 'progress'>,
  codebase: Codebase,
  remote: string,
  { number, branch }: { readonly number: number; readonly branch: BranchName },
  options: CallOptions = {},
): Promise<FetchedBranch> => {
  const repo = repoOf(codebase)
  const own = pullRequestBranchRef(number)
  const problem = await fetch(context, codebase, remote, [`+refs/heads/${branch}:${own}`], options)
  const sha = problem === undefined ? await resolveCommit(context.git, repo, own) : undefined
  if (sha === undefined) {
    const failed = { kind: 'not-fetched', of: { branch }, why: problem ?? '' } as const
    return { sha, problem, notices: problem === undefined ? [] : [failed] }
  }
  const tracking = `refs/remotes/${remote}/${branch}`
  const commands = [
    { update: tracking, to: sha, from: undefined },
    { delete: own, from: sha },
  ] as const
  const moved = await updateRefs(context.git, repo, commands, { reason: `fetch ${remote}` })
  if (moved.ok) return { sha, problem, notices: [] }
  const blocker = /'refs\/remotes\/([^']+)' exists; cannot create/.exec(moved.stderr)?.[1]
  const why = meaningfulLine(moved.stderr)
  return { sha, problem, notices: [{ kind: 'tracking-ref-not-created', remote, branch, blocker, why }] }
}

export const prNotFound = (number: number, why: string, problem: string | undefined): AppError =>
  new AppError('pr-not-found', `couldn't fetch PR #${number}: ${problem ?? why}`, {
    remedy: 'check the number, the remote and your access to it',
  })

const short = (sha: string): string => sha.slice(0, 7)

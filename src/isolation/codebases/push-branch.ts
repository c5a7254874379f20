import type { Codebase } from '../../domain/environment.ts'
import { toAppError } from '../../domain/errors.ts'
import type { NotPublished } from '../../domain/forge/publishing.ts'
import type { Sha } from '../../domain/names.ts'
import type { CallOptions } from '../../git/door.ts'
import { fetchRemote } from '../../git/fetch.ts'
import { countAheadBehind } from '../../git/history.ts'
import { messagesBetween } from '../../git/messages.ts'
import { pushCommit, type Pushed } from '../../git/push.ts'
import { readRef, updateRefs } from '../../git/refs.ts'
import { askBranchAt } from '../../git/remote-refs.ts'
import { type PushAddress, pushAddressOf, remoteInfo, remoteNames } from '../../git/remote.ts'
import type { IsolationContext } from '../context.ts'
import { locked } from '../lock/locked.ts'
import { withoutSecret } from './register.ts'
import { repoOf } from './repo-of.ts'

export type BranchWork = {
  readonly tip: Sha
  /** How many commits base doesn't have. */
  readonly commits: number
  /** Their messages, oldest first; not all if there are very many. */
  readonly messages: readonly string[]
}

/** What a branch has beyond base; undefined if there is no such ref. */
export const branchWork = async (
  { git }: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  { ref, base }: { readonly ref: string; readonly base: Sha },
  options: CallOptions = {},
): Promise<BranchWork | undefined> => {
  const repo = repoOf(codebase)
  const tip = (await readRef(git, repo, ref))?.sha
  if (tip === undefined) return undefined
  const commits = (await countAheadBehind(git, repo, base, [tip], options)).get(tip)?.ahead ?? 0
  const messages =
    commits === 0 ? [] : await messagesBetween(git, repo, { from: base, to: tip, limit: mostMessages }, options)
  return { tip, commits, messages }
}

const mostMessages = 50

export type PushTarget =
  | { readonly address: PushAddress }
  /** It isn't the address that the codebase was registered with. */
  | { readonly changed: { readonly from: string; readonly to: string } }

/** Where a push goes. The push must use this very address: an agent can change the configuration right after. */
export const pushTarget = async (
  { git }: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  remote: string,
): Promise<PushTarget> => {
  const address = await pushAddressOf(git, repoOf(codebase), remote)
  const configured = (address?.configured ?? []).map((url) => withoutSecret(url) ?? NO_ADDRESS)
  const expected = codebase.remoteUrl ?? configured[0] ?? NO_ADDRESS
  const other = configured.find((url) => url !== expected)
  if (address === undefined || other !== undefined) return { changed: { from: expected, to: other ?? NO_ADDRESS } }
  return { address }
}

const NO_ADDRESS = 'no address'

/** Why nothing can be pushed for a codebase without a recorded remote. The repository itself may have one by now. */
export const whyNoTarget = async (
  { git }: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
): Promise<Extract<NotPublished, { kind: 'no-remote' | 'remote-unconfirmed' | 'remote-ambiguous' }>> => {
  const repo = repoOf(codebase)
  const found = await remoteInfo(git, repo)
  if (found !== undefined) {
    const { name: remote, url } = found
    const repository = codebase.checkoutPath ?? codebase.repoPath
    return { kind: 'remote-unconfirmed', remote, url: withoutSecret(url) ?? url, repository }
  }
  const remotes = await remoteNames(git, repo)
  return remotes.length === 0 ? { kind: 'no-remote' } : { kind: 'remote-ambiguous', remotes: remotes.toSorted() }
}

export type BranchPush = {
  readonly address: PushAddress
  readonly remote: string
  readonly commit: Sha
  readonly branch: string
}

/** Pushes without force. Then our own ref says what the remote has, as after any push. */
export const pushBranch = async (
  context: IsolationContext,
  codebase: Codebase,
  push: BranchPush,
  options: CallOptions = {},
): Promise<Pushed> => {
  const { remote, commit, branch } = push
  context.progress(`pushing ${branch} to ${remote}`)
  const pushed = await pushCommit(context.git, repoOf(codebase), push, options)
  if (pushed.outcome !== 'pushed') return pushed
  const command = { update: `refs/remotes/${remote}/${branch}`, to: commit, from: undefined }
  try {
    await locked(context, codebase, `recording the push of ${branch}`, async () => {
      await updateRefs(context.git, repoOf(codebase), [command], { reason: 'coppice: pushed' })
    })
  } catch (error) {
    // The next fetch does it.
    context.log.info('a push could not be recorded', { branch, error: toAppError(error).message })
  }
  return pushed
}

/** What the remote has on the branch now, at the address that was pushed to. */
export const remoteTip = (
  { git }: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  { address, branch }: Pick<BranchPush, 'address' | 'branch'>,
  options: CallOptions = {},
): Promise<Sha | undefined> => askBranchAt(git, repoOf(codebase), address, branch, options)

/** Brings what the branch has on the remote, so that it can be merged here. False if that failed. */
export const fetchBranch = async (
  context: IsolationContext,
  codebase: Codebase,
  { remote, branch }: Pick<BranchPush, 'remote' | 'branch'>,
  options: CallOptions = {},
): Promise<boolean> => {
  const refspecs = [`+refs/heads/${branch}:refs/remotes/${remote}/${branch}`]
  try {
    const fetched = await locked(context, codebase, `fetching ${branch}`, () =>
      fetchRemote(context.git, repoOf(codebase), { remote, refspecs }, options),
    )
    return fetched.outcome === 'fetched' && fetched.problem === undefined
  } catch (error) {
    if (options.signal?.aborted === true) throw error
    return false
  }
}

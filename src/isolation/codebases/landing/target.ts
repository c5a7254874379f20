/*
 * The branch that work lands on. In: a codebase. Out: where that branch is now, on the remote or, without one, here; and
 * whether it could be moved to a commit that continues it.
 */
import type { RepoConfig } from '../../../domain/config/repository.ts'
import type { Codebase } from '../../../domain/environment.ts'
import { AppError, isAppError } from '../../../domain/errors.ts'
import type { LandingBlock } from '../../../domain/fleet/landing.ts'
import type { Sha } from '../../../domain/names.ts'
import { branchCheckedOut } from '../../../git/admin-dir.ts'
import type { CallOptions } from '../../../git/door.ts'
import { isAncestor } from '../../../git/history.ts'
import { readRef, resolveCommit, updateRefs } from '../../../git/refs.ts'
import type { IsolationContext } from '../../context.ts'
import { locked } from '../../lock/locked.ts'
import { freshen } from '../base.ts'
import { baseAndConfig } from '../base-and-config.ts'
import { type BranchPush, fetchBranch, pushBranch, pushTarget, remoteTip, whyNoTarget } from '../push-branch.ts'
import { repoOf } from '../repo-of.ts'

/** `remote` undefined: the repository has none, and the branch is its own. */
export type LandingTarget = { readonly branch: string } & (
  | { readonly remote: string; readonly address: BranchPush['address'] }
  | { readonly remote: undefined }
)

export type LandingBase = {
  readonly target: LandingTarget
  readonly sha: Sha
  readonly config: RepoConfig
}

type Blocked = { readonly blocked: LandingBlock }

/** The base after a fetch, if a push to it is allowed. The configuration is that of the codebase's own base. */
export const landingBase = async (
  context: IsolationContext,
  codebase: Codebase,
  wanted: string | undefined,
  options: CallOptions = {},
): Promise<LandingBase | Blocked> => {
  const fresh = await freshen(context, codebase, { ...options, maxAgeMs: 0 })
  if (fresh.outcome === 'offline') return { blocked: { kind: 'offline', detail: fresh.detail ?? 'no answer' } }
  const usual = await baseAndConfig(context, codebase, undefined, options)
  const isUsual = wanted === undefined || wanted === usual.base.branch
  const base = isUsual ? usual.base : await otherBase(context, codebase, wanted, options)
  const { remote } = codebase
  const expected = `${remote === undefined ? 'refs/heads' : `refs/remotes/${remote}`}/${base?.branch ?? ''}`
  if (base?.branch === undefined || base.ref !== expected) {
    return { blocked: { kind: 'no-base', base: wanted ?? usual.base.name } }
  }
  const target = await landingTarget(context, codebase, base.branch)
  return 'blocked' in target ? target : { target, sha: base.sha, config: usual.config }
}

const otherBase = async (context: IsolationContext, codebase: Codebase, wanted: string, options: CallOptions) => {
  try {
    return (await baseAndConfig(context, codebase, wanted, options)).base
  } catch (error) {
    if (isAppError(error, 'base-not-found')) return undefined
    throw error
  }
}

/** The same checks as for any push: never to a remote that nobody confirmed. */
export const landingTarget = async (
  context: IsolationContext,
  codebase: Codebase,
  branch: string,
): Promise<LandingTarget | Blocked> => {
  const { remote } = codebase
  if (remote !== undefined) {
    const found = await pushTarget(context, codebase, remote)
    if ('changed' in found) return { blocked: { kind: 'remote-changed', ...found.changed } }
    return { branch, remote, address: found.address }
  }
  const why = await whyNoTarget(context, codebase)
  if (why.kind !== 'no-remote') return { blocked: why }
  // Moving the branch under a checkout would make its files look changed.
  const path = await branchCheckedOut(codebase.repoPath, branch)
  return path === undefined
    ? { branch, remote: undefined }
    : { blocked: { kind: 'base-checked-out', base: branch, path } }
}

export type Moved =
  | { readonly outcome: 'landed' }
  /** Somebody else moved the branch, or it isn't known whether we did: look again. */
  | { readonly outcome: 'moved' }
  | Blocked

/** Only forwards, and only from where it was. Afterwards the branch itself is asked. */
export const moveBase = async (
  context: IsolationContext,
  codebase: Codebase,
  target: LandingTarget,
  { from, to }: { readonly from: Sha; readonly to: Sha },
  options: CallOptions = {},
): Promise<Moved> => {
  if (target.remote === undefined) return moveOwnBranch(context, codebase, target.branch, { from, to })
  const { remote, address, branch } = target
  const pushed = await pushBranch(context, codebase, { remote, address, branch, commit: to }, options)
  if (pushed.outcome === 'rejected' && pushed.why !== 'behind') {
    return { blocked: { kind: 'rejected', said: pushed.said } }
  }
  if (pushed.outcome === 'no-access') return { blocked: { kind: 'rejected', said: pushed.said } }
  if (await hasLanded(context, codebase, target, to, options)) return { outcome: 'landed' }
  if (pushed.outcome === 'unreachable') return { blocked: { kind: 'offline', detail: pushed.said } }
  return { outcome: 'moved' }
}

const moveOwnBranch = (
  context: IsolationContext,
  codebase: Codebase,
  branch: string,
  { from, to }: { readonly from: Sha; readonly to: Sha },
): Promise<Moved> =>
  locked(context, codebase, `landing on ${branch}`, async (): Promise<Moved> => {
    const path = await branchCheckedOut(codebase.repoPath, branch)
    if (path !== undefined) return { blocked: { kind: 'base-checked-out', base: branch, path } }
    const command = { update: `refs/heads/${branch}`, from, to }
    const { ok } = await updateRefs(context.git, repoOf(codebase), [command], {
      reason: 'coppice: landed',
      durable: true,
    })
    return { outcome: ok ? 'landed' : 'moved' }
  })

/** Whether the branch has this commit now. Asks the remote; throws `remote-unreachable` if it doesn't answer. */
export const hasLanded = async (
  context: IsolationContext,
  codebase: Codebase,
  target: LandingTarget,
  commit: Sha,
  options: CallOptions = {},
): Promise<boolean> => {
  const { git } = context
  const repo = repoOf(codebase)
  const tip =
    target.remote === undefined
      ? (await readRef(git, repo, `refs/heads/${target.branch}`))?.sha
      : await remoteTip(context, codebase, target, options)
  if (tip === undefined) return false
  if (tip === commit) return true
  // Somebody may have pushed more on top of it.
  if ((await resolveCommit(git, repo, tip, options)) === undefined) {
    const branch = target.branch
    if (target.remote !== undefined) await fetchBranch(context, codebase, { remote: target.remote, branch }, options)
    if ((await resolveCommit(git, repo, tip, options)) === undefined) {
      throw new AppError(
        'remote-unreachable',
        `couldn't fetch what ${target.remote ?? 'the repository'} has on ${branch}`,
      )
    }
  }
  return isAncestor(git, repo, commit, tip, options)
}

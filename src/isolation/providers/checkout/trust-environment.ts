import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import { type AppError, IsolationBlockedError } from '../../../domain/errors.ts'
import type { Sha } from '../../../domain/names.ts'
import { ReasonedError } from '../../../domain/reasoned-error.ts'
import { type GateAnswer, no } from '../../../domain/removal/gates.ts'
import { shellWord } from '../../../domain/text/shell-word.ts'
import type { CallOptions, Tree } from '../../../git/door.ts'
import { markHeadReflog } from '../../../git/reflog.ts'
import { resolveCommit } from '../../../git/refs.ts'
import { baseAndConfig } from '../../codebases/base-and-config.ts'
import type { IsolationContext } from '../../context.ts'
import { usesOf } from '../../gates.ts'
import { acquireLease, type HeldLease } from '../../lease.ts'
import { trustPurpose } from '../../trust.ts'
import type { TrustOutcome, TrustOptions } from '../../provider.ts'
import { presenceOf } from '../../provider-of.ts'
import { notInCommit, type Subject } from './look/not-in-commit.ts'
import { isVouchedCommit } from './vouched-commit.ts'
import { provisionEnvironment, type Provisioned } from './provision/provision.ts'
import { coppice, remedy, shell } from '../../../domain/remedy.ts'

/**
 * A person at the terminal trusts what is in a worktree now. It gets what it was denied at creation; an adopted one
 * gets nothing and only becomes trusted. The trust is recorded last, with the commit it covers, so a failed setup or a
 * crash leaves it untrusted. It is recorded under the lease: before and after, a moved pull request may bring in a
 * commit that nobody has reviewed.
 */
export const trustEnvironment = async (
  context: IsolationContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  { seen, signal }: TrustOptions = {},
): Promise<TrustOutcome> => {
  if (environment.trust === 'own' || (await isVouchedNow(context, codebase, environment, { signal }))) {
    return { wasTrusted: true, commit: seen, ...nothing }
  }
  const { branch, id } = environment
  const tree = await treeOf(context, codebase, environment)
  const commit = seen ?? (await resolveCommit(context.git, tree, 'HEAD', { signal }))
  if (commit === undefined) throw new IsolationBlockedError(`couldn't trust ${branch}: it has no commit checked out`)
  const { config } = await baseAndConfig(context, codebase)
  const request = { purpose: trustPurpose, ...(signal && { signal }) }
  const lease = await acquireLease(context, codebase, environment, request)
  try {
    // Before the checks: a move after them is one that nobody vouched for.
    const log = await markHeadReflog(tree.gitDir)
    if (log === undefined) throw noReflog(environment)
    await assertStill(context, environment, tree, commit)
    let provisioned = nothing
    await assertNobodyInside(context, environment, tree, lease)
    // Read again under the lease: an untrusted run may have ended an earlier vouching since.
    const current = (await context.store.environments.get(id)) ?? environment
    await assertNothingElse(context, { codebase, environment: current, tree, config, commit })
    if (environment.owned) {
      const vouched: IsolatedEnvironment = { ...environment, trust: 'vouched' }
      provisioned = await provisionEnvironment(context, { codebase, environment: vouched, tree, config, signal })
      await assertStill(context, environment, tree, commit)
    }
    await context.store.environments.update(id, { trust: 'vouched', vouchedSha: commit, vouchedLog: log })
    return { wasTrusted: false, commit, ...provisioned }
  } finally {
    await lease.release()
  }
}

/** Whether someone vouched for the commit that is checked out now. The worktree may have moved since. */
export const isVouchedNow = async (
  context: IsolationContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  { signal }: CallOptions = {},
): Promise<boolean> => {
  const { trust, vouchedSha: vouched, vouchedLog: log } = environment
  if (trust !== 'vouched' || vouched === undefined || log === undefined) return false
  const presence = await presenceOf(context, codebase, environment)
  if (presence.state !== 'present') return false
  const { tree } = presence
  const head = await resolveCommit(context.git, tree, 'HEAD', { signal })
  if (head === undefined) return false
  return isVouchedCommit(context, codebase, tree, { vouched, log, head }, { signal })
}

const nothing: Provisioned = { copied: 0, linked: 0, ranSetup: false, notices: [] }

const treeOf = async (
  context: Pick<IsolationContext, 'providers'>,
  codebase: Codebase,
  environment: IsolatedEnvironment,
): Promise<Tree> => {
  const presence = await presenceOf(context, codebase, environment)
  if (presence.state === 'present') return presence.tree
  throw new IsolationBlockedError(`couldn't trust ${environment.branch}: its worktree isn't there`, {
    remedy: remedy`run ${coppice('doctor')} for suggestions`,
  })
}

const assertStill = async (
  { git }: Pick<IsolationContext, 'git'>,
  { branch }: IsolatedEnvironment,
  tree: Tree,
  commit: Sha,
): Promise<void> => {
  const head = await resolveCommit(git, tree, 'HEAD')
  if (head === commit) return
  const now = head === undefined ? 'has no commit checked out' : `is at ${short(head)}`
  throw new IsolationBlockedError(`didn't trust ${branch}: it was at ${short(commit)} and ${now} now`, {
    remedy: 'review the new commit, then run this command again',
  })
}

/**
 * Setup runs files, and agents read settings from them: whoever reviewed the commit hasn't seen those that aren't in
 * it. Ignored files of an adopted worktree are its owner's, and nothing runs there now. In a worktree that is vouched
 * for and has moved, only setup, trusted runs and people can have left them.
 */
const assertNothingElse = async (context: IsolationContext, subject: Subject): Promise<void> => {
  const { environment, tree } = subject
  const isVouched = environment.trust === 'vouched' && environment.vouchedLog !== undefined
  const ignored = environment.owned && !isVouched
  const found = await notInCommit(context, subject, { ignored })
  if (found.length === 0) return
  const reasons = found.map((fact) => no('nothing-uncommitted', fact))
  const inTree = `git -C ${shellWord(tree.path)}`
  const hasIgnored = found.some((fact) => fact.kind === 'not-in-commit' && fact.state === 'ignored')
  const clean = remedy`; ${shell(`${inTree} clean -nffdX`)} lists ignored files, repositories among them included, and ${shell(`${inTree} clean -ffdX`)} deletes them`
  throw new ReasonedError(
    'isolation-blocked',
    `didn't trust ${environment.branch}, which has more than its commit`,
    reasons,
    {
      remedy: remedy`commit and review, or discard, what ${shell(`${inTree} status --ignored`)} shows, then run this command again${hasIgnored ? clean : ''}`,
    },
  )
}

/** Without one, nobody would notice that the worktree was moved. */
const noReflog = ({ branch, path }: IsolatedEnvironment): AppError =>
  new IsolationBlockedError(`didn't trust ${branch}: git keeps no reflog of its HEAD`, {
    remedy: remedy`start one: ${shell(`git -C ${shellWord(path)} -c core.logAllRefUpdates=true checkout --detach`)}, then check out the branch again`,
  })

/**
 * Processes inside were started without trust and could read the files copied now; the caller may stay. An adopted
 * worktree gets no files and its owner's programs run in it: there only our own run is in the way, since it could still
 * change what was just vouched for.
 */
const assertNobodyInside = async (
  context: IsolationContext,
  environment: IsolatedEnvironment,
  tree: Tree,
  { purpose, holder }: HeldLease,
): Promise<void> => {
  const isOurs = ({ fact }: GateAnswer): boolean =>
    fact?.kind === 'you' || (fact?.kind === 'lease' && fact.purpose === purpose && fact.pid === holder.pid)
  const matters = ({ fact }: GateAnswer): boolean => environment.owned || fact?.kind === 'lease'
  const uses = (await usesOf(context, environment, tree)).filter((use) => matters(use) && !isOurs(use))
  if (uses.length === 0) return
  throw new ReasonedError('isolation-blocked', `didn't trust ${environment.branch}`, uses, {
    remedy: 'end what runs there, which was started without trust, then run this command again',
  })
}

const short = (sha: Sha): string => sha.slice(0, 7)

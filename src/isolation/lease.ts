import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import type { EnvironmentId } from '../domain/names.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import type { Tree } from '../domain/tree.ts'
import { type Liveness, livenessSeenBy } from '../process/identity.ts'
import type { Lease } from '../store/store.ts'
import { shellWord } from '../domain/text/shell-word.ts'
import { agentsInside } from './agents-inside.ts'
import type { IsolationContext } from './context.ts'
import { locked } from './lock/locked.ts'
import { isSame } from '../process/tree.ts'
import { byProvider, presenceOf, providerOf } from './provider-of.ts'
import { coppice, remedy } from '../domain/remedy.ts'

export type HeldLease = Lease & {
  /** Idempotent. */
  readonly release: () => Promise<void>
}

export type LeaseRequest = {
  /** Shown by other tools, for example "agent run for slack". */
  readonly purpose: string
  /** The lease may be dropped only once this process is dead (default: our own). */
  readonly holder?: ProcessIdentity
  /** Only if nobody else uses the environment. For agents of the fleet. */
  readonly alone?: true
  /** For other users: refused while an agent of the fleet is working there. */
  readonly withoutAgents?: true
  readonly signal?: AbortSignal
}

/**
 * Marks the environment as in use: a row for us, and git's lock on the worktree for other tools. Takes the repository's
 * lock, as removal does, so that each sees what the other did.
 */
export const acquireLease = async (
  context: IsolationContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  { purpose, holder = context.self, alone, withoutAgents, signal }: LeaseRequest,
): Promise<HeldLease> => {
  const lease: Lease = {
    id: context.ids(),
    host: context.host,
    environmentId: environment.id,
    purpose,
    holder,
    createdAt: context.clock(),
  }
  const take = async (): Promise<void> => {
    const tree = await usableTree(context, codebase, environment)
    if (alone === true) await assertAlone(context, environment, holder)
    if (withoutAgents === true) await assertNoAgents(context, environment)
    // The row first: a lock without a row would never be cleared.
    await context.store.leases.insert(lease)
    await context.failpoint('lease.recorded')
    try {
      // False if it is locked already, by another lease or by another tool, which then clears its own lock.
      await (await providerOf(context, environment)).lock(tree, lockReason(purpose))
    } catch (error) {
      await context.store.leases.remove(lease.id)
      throw error
    }
  }
  await locked(context, codebase, `leasing ${environment.branch}`, take, signal)
  return { ...lease, release: () => releaseLease(context, codebase, lease) }
}

/** Two writers in one worktree would overwrite each other's work. */
const assertAlone = async (
  context: Pick<IsolationContext, 'store' | 'host' | 'self'>,
  { id, branch }: IsolatedEnvironment,
  holder: ProcessIdentity,
): Promise<void> => {
  const others = ((await leaseHolders(context, [id])).get(id) ?? []).filter(
    (one) => one.liveness !== 'dead' && !isSame(one.lease.holder, holder),
  )
  const [first] = others
  if (first === undefined) return
  throw new AppError('busy', `${branch} is in use: ${first.lease.purpose}`, { remedy: 'try again when that has ended' })
}

const assertNoAgents = async (context: IsolationContext, environment: IsolatedEnvironment): Promise<void> => {
  const names = (await agentsInside(context, environment)).flatMap(({ fact }) =>
    fact?.kind === 'agent' ? [fact.name] : [],
  )
  const [name] = names
  if (name === undefined) return
  throw new AppError('busy', `the fleet's agent ${name} is working in ${environment.branch}`, {
    remedy: remedy`send it a message with ${coppice(`nudge ${shellWord(name)} <text>`)}, or wait until it has finished`,
  })
}

/** The leases of these environments and whether their holders are alive. Unknown for another host. */
export const leaseHolders = async (
  context: Pick<IsolationContext, 'store' | 'host' | 'self'>,
  ids: readonly EnvironmentId[],
): Promise<Map<EnvironmentId, { lease: Lease; liveness: Liveness }[]>> => {
  const leases = await context.store.leases.ofEnvironments(ids)
  const judged = leases.map((lease) => ({ lease, liveness: judge(context, lease) }))
  return Map.groupBy(judged, ({ lease }) => lease.environmentId)
}

/**
 * For reconciliation: drops this codebase's leases whose holder is provably dead, and our lock on each environment left
 * without one. Takes the repository's lock, so the caller must not hold it.
 */
export const dropDeadLeases = (context: IsolationContext, codebase: Codebase): Promise<Lease[]> =>
  locked(context, codebase, 'dropping leases of dead processes', async () => {
    const dropped: Lease[] = []
    for (const lease of await context.store.leases.all(context.host)) {
      if (judge(context, lease) !== 'dead') continue
      const environment = await context.store.environments.get(lease.environmentId)
      if (environment !== undefined && environment.codebaseId !== codebase.id) continue
      await context.store.leases.remove(lease.id)
      dropped.push(lease)
    }
    await context.failpoint('lease.dropped')
    // All, not only those of dropped leases: a crash may have left a lock without a row.
    const live = await context.store.environments.live(codebase.id)
    const usable = live.filter(({ host, status }) => host === context.host && status === 'active')
    await unlockUnused(context, codebase, usable)
    return dropped
  })

/** Drops the environment's leases of a holder that has ended, and our lock if no other lease is left. */
export const dropLeasesOf = async (
  context: IsolationContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  holder: ProcessIdentity,
): Promise<void> => {
  const leases = await context.store.leases.ofEnvironments([environment.id])
  for (const lease of leases) if (isSame(lease.holder, holder)) await releaseLease(context, codebase, lease)
}

const usableTree = async (
  context: Pick<IsolationContext, 'store' | 'providers'>,
  codebase: Codebase,
  { id, branch }: IsolatedEnvironment,
): Promise<Tree> => {
  const current = await context.store.environments.get(id)
  if (current?.status !== 'active') {
    throw new AppError('not-found', `can't use ${branch}: it is ${current?.status ?? 'gone'}`, {
      remedy: remedy`run ${coppice('worktree list')} to see its status`,
    })
  }
  const presence = await presenceOf(context, codebase, current)
  if (presence.state === 'present') return presence.tree
  const why = presence.state === 'missing' ? `${current.path} doesn't exist` : presence.detail
  throw new AppError('not-found', `can't use ${branch}: ${why}`, {
    remedy: remedy`run ${coppice('doctor')} for suggestions`,
  })
}

const prefix = 'coppice:'

const lockReason = (purpose: string): string => `${prefix} ${purpose.replaceAll(/\s+/g, ' ').trim()}`

const releaseLease = async (context: IsolationContext, codebase: Codebase, lease: Lease): Promise<void> =>
  locked(context, codebase, 'releasing a lease', async () => {
    await context.store.leases.remove(lease.id)
    await context.failpoint('lease.released')
    const environment = await context.store.environments.get(lease.environmentId)
    if (environment?.status === 'active') await unlockUnused(context, codebase, [environment])
  })

/** One query for all locked ones: leases only change under the lock that the caller holds. */
const unlockUnused = async (
  context: Pick<IsolationContext, 'store' | 'providers'>,
  codebase: Codebase,
  environments: readonly IsolatedEnvironment[],
): Promise<void> => {
  const locked: IsolatedEnvironment[] = []
  for (const [provider, served] of await byProvider(context, environments)) {
    locked.push(...served.filter((environment) => provider.mayBeLocked(codebase, environment)))
  }
  const leases = await context.store.leases.ofEnvironments(locked.map(({ id }) => id))
  const used = new Set(leases.map(({ environmentId }) => environmentId))
  for (const environment of locked) if (!used.has(environment.id)) await unlock(context, codebase, environment)
}

const unlock = async (
  context: Pick<IsolationContext, 'providers'>,
  codebase: Codebase,
  environment: IsolatedEnvironment,
): Promise<void> => {
  const provider = await providerOf(context, environment)
  const presence = await provider.presence(codebase, environment)
  // Not this instance, or not readable: the lock isn't ours to clear.
  if (presence.state !== 'present' && presence.state !== 'moved') return
  const reason = await provider.lockReason(presence.tree)
  if (reason?.startsWith(prefix) === true) await provider.unlock(presence.tree, reason)
}

const judge = ({ host, self }: Pick<IsolationContext, 'host' | 'self'>, lease: Lease): Liveness =>
  lease.host === host ? livenessSeenBy(self, lease.holder) : 'cannot-tell'

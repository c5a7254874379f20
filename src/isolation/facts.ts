import { realpathSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { isAppError } from '../domain/errors.ts'
import type { Merged } from '../domain/merge-proof.ts'
import type { BranchName, EnvironmentId } from '../domain/names.ts'
import type { UncommittedWork } from '../domain/removal/uncommitted.ts'
import { processesInside } from '../process/inside/processes-inside.ts'
import type { IsolationContext } from './context.ts'
import { mapConcurrent } from './map-concurrent.ts'
import { leaseHolders } from './lease.ts'
import { positionsOf } from './merge-proof/positions.ts'
import { isInside } from './paths.ts'
import { findRemovable, type Removable } from './removable.ts'
import { followMoves, type Moved } from './moved.ts'
import { followRenames, presenceOf, providerOf } from './provider-of.ts'
import type { Glance, Presence } from './provider.ts'

export type Health = 'healthy' | 'missing' | 'not-ours' | 'cannot-tell'

export type EnvironmentFacts = {
  readonly environment: IsolatedEnvironment
  /** The caller is in it. */
  readonly current: boolean
  /** undefined: not requested, not there, or unknown. */
  readonly dirty: UncommittedWork | undefined
  /** Commits on a detached HEAD that no branch has; undefined as above. */
  readonly detached: number | undefined
  readonly ahead: number | undefined
  readonly behind: number | undefined
  readonly merged: Merged
  readonly lastActivityAt: number
  /** `platform:id` of each conversation that points at it. */
  readonly conversations: readonly string[]
  readonly inUse: { readonly by: readonly string[] }
  readonly health: Health
  /** What cleanup would do with it now. */
  readonly removable: Removable
}

export type FactsOptions = {
  readonly signal?: AbortSignal | undefined
  readonly cwd?: string
  /** The conversation that asks doesn't hold its own environment. */
  readonly askedBy?: string | undefined
  /** false: skips looking at files, which takes most of the time. */
  readonly dirty?: boolean
  /** Called with worktrees that somebody moved, after their new paths are recorded. */
  readonly onMoved?: (moved: readonly Moved[]) => void
}

/**
 * Every live environment of the codebase and its status. One git call for all branches, one walk of the process table
 * for all directories, one query per question; only the look at the files is one process each, a few at a time. An
 * environment that can't be inspected is listed with facts that say so.
 */
export const listWithFacts = async (
  context: IsolationContext,
  codebase: Codebase,
  options: FactsOptions = {},
): Promise<EnvironmentFacts[]> => {
  const { environments: live, places } = await placesOf(context, codebase, options)
  if (live.length === 0) return []
  // Only shown as it is now; writers record it.
  const followed = await followRenames(context, codebase, live, { dryRun: true })
  const environments = followed.map(({ environment }) => environment)
  const ids = environments.map(({ id }) => id)
  // Do the other lookups while git walks the history.
  const standing = positionsOf(context, codebase, environments, options)
  standing.catch(() => undefined)
  // Starting git for the files keeps us busy, so start it for the refs first: their answer leads to more questions.
  await nextTurn()
  // Git looks at the files while we read the process table; our own git doesn't count as use.
  const cwd = realCwd(options.cwd)
  const [files, users, pointing] = await Promise.all([
    filesOf(context, environments, places, options),
    usersOf(context, environments),
    context.store.conversations.ofEnvironments(ids),
  ])
  const conversations = Map.groupBy(pointing, (one) => one.environmentId)
  const { tips, positions, merged } = await standing
  const judged = environments.map((environment, i) => ({
    environment,
    merged: withDetached(merged.get(environment.branch) ?? gone(environment.branch), files[i]?.detached),
    lastActivityAt: Math.max(environment.lastActivityAt, tips.get(environment.id)?.committerDate ?? 0),
  }))
  const here = judged.filter(({ environment }) => environment.host === context.host)
  const removable = await findRemovable(context, codebase, here, options)
  return judged.map(({ environment, ...judgement }, i) => {
    const ref = tips.get(environment.id)
    const position = ref && positions.get(ref.sha)
    return {
      environment,
      ...judgement,
      removable: removable.get(environment.id) ?? { kind: 'active' },
      current: cwd.some((path) => isInside(environment.path, path)),
      dirty: files[i]?.dirty,
      detached: files[i]?.detached,
      ahead: position?.ahead,
      behind: position?.behind,
      conversations: (conversations.get(environment.id) ?? []).map((one) => `${one.platform}:${one.conversationId}`),
      inUse: { by: users.get(environment.id) ?? [] },
      health: healthOf(places[i] ?? { state: 'cannot-tell', detail: 'it is on another host' }),
    }
  })
}

const healthOf = ({ state }: Presence): Health => {
  // It isn't at its recorded path; callers that need it follow the move first.
  if (state === 'moved') return 'missing'
  return state === 'present' ? 'healthy' : state
}

/** Commits on a detached HEAD aren't merged, even if its branch is. */
const withDetached = (merged: Merged, detached = 0): Merged =>
  detached > 0 && (merged.value === 'yes' || merged.value === 'empty') ? { value: 'no', own: detached } : merged

const gone = (branch: BranchName): Merged => ({ value: 'cannot-tell', why: { kind: 'branch-gone', branch } })

/** Where each is. An undefined place is on another host: we can't inspect its files from here. */
const placesOf = async (
  context: Pick<IsolationContext, 'store' | 'providers' | 'host'>,
  codebase: Codebase,
  { onMoved }: FactsOptions,
): Promise<{ environments: IsolatedEnvironment[]; places: (Presence | undefined)[] }> => {
  const look = async () => {
    const environments = await context.store.environments.live(codebase.id)
    const here = environments.map(async (one) =>
      one.host === context.host ? presenceOf(context, codebase, one) : undefined,
    )
    return { environments, places: await Promise.all(here) }
  }
  const found = await look()
  if (!found.places.some((place) => place?.state === 'moved')) return found
  onMoved?.(await followMoves(context, codebase))
  return look()
}

/**
 * Each call is short, but starting it keeps us busy, so a third fills the gaps. 50 worktrees of 3,000 files on two busy
 * cores, against one `git status` after another: 0.91 with two at a time, 0.68 with three, no better with more.
 */
const statusLanes = 3

const filesOf = async (
  context: IsolationContext,
  environments: readonly IsolatedEnvironment[],
  places: readonly (Presence | undefined)[],
  { dirty = true, signal }: FactsOptions,
): Promise<(Glance | undefined)[]> =>
  mapConcurrent(
    statusLanes,
    environments.map((environment, i) => ({ environment, place: places[i] })),
    async (one) => {
      const { environment, place } = one
      if (!dirty || place?.state !== 'present') return undefined
      try {
        return await (await providerOf(context, environment)).glance(context, place.tree, { signal })
      } catch (error) {
        if (isAppError(error, 'cancelled')) throw error
        context.log.warn('a worktree could not be looked at', { path: place.tree.path, error })
        return undefined
      }
    },
  )

/** Leases whose holder isn't known to be dead, and processes inside. For display only; removal has its own gates. */
const usersOf = async (
  context: IsolationContext,
  environments: readonly IsolatedEnvironment[],
): Promise<ReadonlyMap<EnvironmentId, readonly string[]>> => {
  const here = environments.filter(({ host, status }) => host === context.host && status !== 'missing')
  const held = await leaseHolders(
    context,
    environments.map(({ id }) => id),
  )
  const inside = Map.groupBy(await insideOf(context, here), ({ dir }) => dir)
  return new Map(
    environments.map(({ id, path, host }) => {
      const leases = (held.get(id) ?? []).filter(({ liveness }) => liveness !== 'dead')
      const processes = host === context.host ? (inside.get(path) ?? []) : []
      return [
        id,
        [
          ...leases.map(({ lease }) => `${lease.purpose} (process ${lease.holder.pid})`),
          ...processes.map(({ command, pid }) => `${command} (process ${pid})`),
        ],
      ]
    }),
  )
}

const insideOf = async (
  { self, log, git }: Pick<IsolationContext, 'git' | 'log' | 'self'>,
  here: readonly IsolatedEnvironment[],
): Promise<Awaited<ReturnType<typeof processesInside>>['inside']> => {
  if (here.length === 0) return []
  try {
    const dirs = here.map(({ path }) => path)
    return (
      await processesInside(dirs, {
        except: { has: (pid) => pid === self.pid || git.running.has(pid) },
        mappings: false,
      })
    ).inside
  } catch (error) {
    log.warn('the processes could not be looked at', { error })
    return []
  }
}

/**
 * As given and as the kernel resolves it. Synchronous: the first asynchronous call starts the thread pool, which took 8
 * ms while git kept both cores busy.
 */
const realCwd = (cwd: string | undefined): string[] => {
  if (cwd === undefined) return []
  try {
    return [cwd, realpathSync(cwd)]
  } catch {
    return [cwd]
  }
}

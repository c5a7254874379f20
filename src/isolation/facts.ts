import { realpathSync } from 'node:fs'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { isAppError, toAppError } from '../domain/errors.ts'
import type { Merged } from '../domain/merge-proof.ts'
import { type BranchName, type EnvironmentId, type Sha, toRepoPath } from '../domain/names.ts'
import type { AheadBehind } from '../git/ahead-behind.ts'
import type { CallOptions, Repo } from '../git/door.ts'
import { countAheadBehind } from '../git/history.ts'
import { listRefs, type Ref } from '../git/refs.ts'
import { processesInside } from '../process/inside.ts'
import type { Base } from './base-branch.ts'
import { baseAndConfig } from './base-and-config.ts'
import type { IsolationContext } from './context.ts'
import { followRenames } from './follow-rename.ts'
import { mapConcurrent } from './map-concurrent.ts'
import { leaseHolders } from './lease.ts'
import { questionAbout } from './merge-question.ts'
import { type Forge, mergedMany } from './merged.ts'
import { isInside } from './paths.ts'
import { followMoves, type Moved } from './moved.ts'
import { type UncommittedWork, uncommittedWork } from './uncommitted.ts'
import { detachedCommits } from './unreachable.ts'
import { healthOf, type Presence, presenceOf } from './presence.ts'
import type { Health } from './provider.ts'

export type EnvironmentFacts = {
  readonly environment: IsolatedEnvironment
  /** The asker stands in it. */
  readonly current: boolean
  /** undefined: not asked, not there, or it could not be told. */
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
}

export type FactsOptions = CallOptions & {
  readonly cwd?: string
  /** false: files are not looked at, which is most of the time it takes. */
  readonly dirty?: boolean
  readonly forge?: Forge
  /** Called when somebody had moved worktrees, once their records say where they are now. */
  readonly onMoved?: (moved: readonly Moved[]) => void
}

/**
 * Every live environment of the codebase with what is to be said about it. Git is asked once for all branches, the
 * process table is walked once for all directories, the store is asked once per question; only the look at the files is
 * one process each, two at a time. An environment that cannot be looked at has facts that say so; the list goes on.
 */
export const listWithFacts = async (
  context: IsolationContext,
  codebase: Codebase,
  options: FactsOptions = {},
): Promise<EnvironmentFacts[]> => {
  const { environments: live, places } = await placesOf(context, codebase, options)
  if (live.length === 0) return []
  // Shown as it is now; whoever changes something records it.
  const followed = await followRenames(context, codebase, live, { dryRun: true })
  const environments = followed.map(({ environment }) => environment)
  const ids = environments.map(({ id }) => id)
  // While git walks the history, the rest of this process looks around.
  const mergeStatus = mergeStatusOf(context, codebase, environments, options)
  mergeStatus.catch(() => undefined)
  // Git looks at the files while we read the process table; our own git does not count as use.
  const cwd = realCwd(options.cwd)
  const [files, users, pointing] = await Promise.all([
    filesOf(context, places, options),
    usersOf(context, environments),
    context.store.conversations.ofEnvironments(ids),
  ])
  const conversations = Map.groupBy(pointing, (one) => one.environmentId)
  const { refs, positions, merged } = await mergeStatus
  return environments.map((environment, i) => {
    const ref = refs.get(environment.branch)
    const position = ref && positions.get(ref.sha)
    return {
      environment,
      current: cwd.some((path) => isInside(environment.path, path)),
      dirty: files[i]?.dirty,
      detached: files[i]?.detached,
      ahead: position?.ahead,
      behind: position?.behind,
      merged: withDetached(merged.get(environment.branch) ?? gone(environment.branch), files[i]?.detached),
      lastActivityAt: Math.max(environment.lastActivityAt, ref?.committerDate ?? 0),
      conversations: (conversations.get(environment.id) ?? []).map((one) => `${one.platform}:${one.conversationId}`),
      inUse: { by: users.get(environment.id) ?? [] },
      health: healthOf(places[i] ?? { state: 'cannot-tell', detail: 'it lies on another host' }),
    }
  })
}

type MergeStatus = {
  readonly refs: ReadonlyMap<string, Ref>
  readonly positions: ReadonlyMap<Sha, AheadBehind>
  readonly merged: ReadonlyMap<BranchName, Merged>
}

const mergeStatusOf = async (
  context: IsolationContext,
  codebase: Codebase,
  environments: readonly IsolatedEnvironment[],
  { signal, forge }: FactsOptions,
): Promise<MergeStatus> => {
  const repo = { commonDir: toRepoPath(codebase.repoPath) }
  let refs: ReadonlyMap<string, Ref> = new Map()
  try {
    const branches = listing(context, repo, signal)
    const { base } = await baseAndConfig(context, codebase, undefined, { list: branches.list, signal })
    const heads = await branches.heads()
    refs = heads
    const questions = environments.flatMap((environment) => {
      const ref = heads.get(environment.branch)
      return ref === undefined ? [] : [questionAbout(environment, ref.sha)]
    })
    const tips = questions.map(({ tip }) => tip)
    const positions = await positionsOf(context, repo, base, tips, signal)
    const known = positions === undefined ? {} : { positions }
    const merged = await mergedMany(context, codebase, questions, base, { ...known, signal, ...(forge && { forge }) })
    return { refs, positions: positions ?? new Map(), merged }
  } catch (error) {
    if (isAppError(error, 'cancelled')) throw error
    const { message: detail } = toAppError(error)
    const merged = environments.map(({ branch }): [BranchName, Merged] => [branch, { value: 'cannot-tell', detail }])
    return { refs, positions: new Map(), merged: new Map(merged) }
  }
}

/** The branches come with the first question about base: one process instead of two. */
const listing = ({ git }: IsolationContext, repo: Repo, signal: AbortSignal | undefined) => {
  let first: Promise<Ref[]> | undefined
  const ask = (patterns: readonly string[]): Promise<Ref[]> => listRefs(git, repo, patterns, { signal })
  return {
    list: (patterns: readonly string[]): Promise<Ref[]> =>
      first === undefined ? (first = ask(['refs/heads', ...patterns])) : ask(patterns),
    heads: async (): Promise<ReadonlyMap<string, Ref>> => {
      const refs = await (first ??= ask(['refs/heads']))
      const heads = refs.filter(({ name }) => name.startsWith(prefix))
      return new Map(heads.map((ref) => [ref.name.slice(prefix.length), ref]))
    },
  }
}

const prefix = 'refs/heads/'

/** undefined when git stumbled over one of them: then each is asked for itself, by those who need the answer. */
const positionsOf = async (
  { git }: IsolationContext,
  repo: Repo,
  base: Base,
  tips: readonly Sha[],
  signal: AbortSignal | undefined,
): Promise<ReadonlyMap<Sha, AheadBehind> | undefined> => {
  try {
    return await countAheadBehind(git, repo, base.sha, tips, { signal })
  } catch (error) {
    if (isAppError(error, 'cancelled')) throw error
    return undefined
  }
}

/** What is on its branch may be merged: what is on its detached HEAD is not. */
const withDetached = (merged: Merged, detached = 0): Merged =>
  detached > 0 && (merged.value === 'yes' || merged.value === 'empty') ? { value: 'no', own: detached } : merged

const gone = (branch: BranchName): Merged => ({ value: 'cannot-tell', detail: `no branch ${branch}` })

/** Where each is; a place of undefined lies on another host, and nothing can be said about its files from here. */
const placesOf = async (
  context: IsolationContext,
  codebase: Codebase,
  { onMoved }: FactsOptions,
): Promise<{ environments: IsolatedEnvironment[]; places: (Presence | undefined)[] }> => {
  const look = async () => {
    const environments = await context.store.environments.live(codebase.id)
    const here = environments.map(async (one) => (one.host === context.host ? presenceOf(codebase, one) : undefined))
    return { environments, places: await Promise.all(here) }
  }
  const found = await look()
  if (!found.places.some((place) => place?.state === 'moved')) return found
  onMoved?.(await followMoves(context, codebase))
  return look()
}

/**
 * Short calls, whose start keeps this process busy: a third one fills the gaps. 50 worktrees of 3,000 files on two busy
 * cores: 0.91 of the same `git status` one after the other with two at a time, 0.68 with three, no better with more.
 */
const statusLanes = 3

const filesOf = async (
  context: IsolationContext,
  places: readonly (Presence | undefined)[],
  { dirty = true, signal }: FactsOptions,
): Promise<({ dirty: UncommittedWork; detached: number } | undefined)[]> =>
  mapConcurrent(statusLanes, places, async (place) => {
    if (!dirty || place?.state !== 'present') return undefined
    try {
      return {
        dirty: await uncommittedWork(context, place.tree, { signal }),
        detached: await detachedCommits(context, place.tree),
      }
    } catch (error) {
      if (isAppError(error, 'cancelled')) throw error
      context.log.warn('a worktree could not be looked at', { path: place.tree.path, error })
      return undefined
    }
  })

/** Leases whose holder is not known to be dead, and processes inside. Enough to show; removal asks its own gates. */
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
  { self, log, git }: IsolationContext,
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
 * As it was said and as the kernel knows it. Synchronous: the first asynchronous call starts the threads that do them,
 * which took 8 ms while git was busy on both cores.
 */
const realCwd = (cwd: string | undefined): string[] => {
  if (cwd === undefined) return []
  try {
    return [cwd, realpathSync(cwd)]
  } catch {
    return [cwd]
  }
}

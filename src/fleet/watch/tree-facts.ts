import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { unlessMissingSync } from '../../domain/missing.ts'
import type { CodebaseId, EnvironmentId } from '../../domain/names.ts'
import type { UncommittedWork } from '../../domain/removal/uncommitted.ts'
import type { Tree } from '../../domain/tree.ts'
import type { IsolationContext } from '../../isolation/context.ts'
import { mapInPairs } from '../../isolation/map-concurrent.ts'
import { type CountedAhead, countAhead } from '../../isolation/merge-proof/positions.ts'
import { presenceOf, providerOf } from '../../isolation/provider-of.ts'

/** undefined: unknown. */
export type TreeFacts = {
  readonly dirty: UncommittedWork | undefined
  /** Commits that the base branch doesn't have. */
  readonly ahead: number | undefined
}

export type WatchedTree = {
  readonly environment: IsolatedEnvironment
  readonly codebase: Codebase
  /** When its agent last did something. */
  readonly lastSignAt: number | undefined
}

export type TreeFactsCache = {
  readonly of: (id: EnvironmentId) => TreeFacts | undefined
  /** Asks git about those that seem to have changed, and seldom about the others. Returns how many it asked about. */
  readonly refresh: (watched: readonly WatchedTree[], signal?: AbortSignal) => Promise<number>
}

/** An agent at work changes its files all the time, and `git status` reads all of them. */
const AGAIN_MS = 10_000

/** Files can change without any of the signs that are cheap to see. */
const QUIET_MS = 60_000

type Known = TreeFacts & { readonly files: string; readonly branch: string; readonly lookedAt: number }

/** What git knows about the watched worktrees, asked as rarely as possible. */
export const createTreeFacts = (context: IsolationContext): TreeFactsCache => {
  const known = new Map<EnvironmentId, Known>()
  const counted = new Map<CodebaseId, CountedAhead>()

  const dirtyOf = async (one: Look, signal: AbortSignal | undefined): Promise<UncommittedWork | undefined> => {
    if (one.tree === undefined) return undefined
    if (!one.isFilesDue) return known.get(one.environment.id)?.dirty
    try {
      return (await (await providerOf(context, one.environment)).glance(context, one.tree, { signal })).dirty
    } catch (error) {
      context.log.warn('a worktree could not be looked at', { path: one.tree.path, error })
      return undefined
    }
  }

  const aheadOf = async (codebase: Codebase, looks: readonly Look[], signal: AbortSignal | undefined) => {
    const due = looks.filter(({ tree, isBranchDue }) => tree !== undefined && isBranchDue)
    if (due.length === 0) return undefined
    try {
      const before = counted.get(codebase.id)
      // All of them, so that the answers of the others aren't forgotten.
      const trees = looks.filter(({ tree }) => tree !== undefined).map(({ environment }) => environment)
      const now = await countAhead(context, codebase, trees, { before, ...(signal && { signal }) })
      counted.set(codebase.id, now)
      return now.ahead
    } catch (error) {
      context.log.warn('the branches of a repository could not be counted', { codebase: codebase.name, error })
      return new Map<EnvironmentId, number>()
    }
  }

  const refreshOne = async (
    codebase: Codebase,
    looks: readonly Look[],
    signal: AbortSignal | undefined,
  ): Promise<void> => {
    const ahead = await aheadOf(codebase, looks, signal)
    await mapInPairs(
      looks.filter(({ isFilesDue, isBranchDue }) => isFilesDue || isBranchDue),
      async (one) => {
        const { id } = one.environment
        const dirty = await dirtyOf(one, signal)
        if (signal?.aborted === true) return
        const commits = one.tree === undefined ? undefined : ahead === undefined ? known.get(id)?.ahead : ahead.get(id)
        const lookedAt = one.isFilesDue ? context.clock() : (known.get(id)?.lookedAt ?? 0)
        const files = one.isFilesDue ? one.files : (known.get(id)?.files ?? '')
        known.set(id, { dirty, ahead: commits, files, branch: one.branch, lookedAt })
      },
    )
  }

  return {
    of: (id) => known.get(id),
    refresh: async (watched, signal) => {
      const seen = new Set(watched.map(({ environment }) => environment.id))
      for (const id of known.keys()) if (!seen.has(id)) known.delete(id)
      const looks: (Look & { readonly codebase: Codebase })[] = []
      for (const one of watched)
        looks.push({ ...(await lookAt(context, one, known.get(one.environment.id))), codebase: one.codebase })
      for (const [codebase, group] of Map.groupBy(looks, ({ codebase }) => codebase))
        await refreshOne(codebase, group, signal)
      return looks.filter(({ isFilesDue, isBranchDue }) => isFilesDue || isBranchDue).length
    },
  }
}

type Look = {
  readonly environment: IsolatedEnvironment
  /** Undefined: it isn't there, or isn't ours. */
  readonly tree: Tree | undefined
  readonly files: string
  readonly branch: string
  readonly isFilesDue: boolean
  readonly isBranchDue: boolean
}

/** Starts no process. */
const lookAt = async (
  context: IsolationContext,
  { environment, codebase, lastSignAt }: WatchedTree,
  known: Known | undefined,
): Promise<Look> => {
  const isHere = environment.host === context.host && environment.status === 'active'
  const presence = isHere ? await presenceOf(context, codebase, environment) : undefined
  if (presence?.state !== 'present') {
    const isNew = known !== undefined && (known.dirty !== undefined || known.ahead !== undefined)
    return { environment, tree: undefined, files: '', branch: '', isFilesDue: isNew, isBranchDue: isNew }
  }
  const { tree } = presence
  const files = [tree.path, join(tree.gitDir, 'index')].map(stampOf).concat(String(lastSignAt)).join()
  const branch = [join(tree.gitDir, 'HEAD'), join(tree.gitDir, 'logs', 'HEAD')].map(stampOf).join()
  const waited = known === undefined ? Infinity : context.clock() - known.lookedAt
  return {
    environment,
    tree,
    files,
    branch,
    isFilesDue: waited >= QUIET_MS || (files !== known?.files && waited >= AGAIN_MS),
    isBranchDue: waited >= QUIET_MS || branch !== known?.branch,
  }
}

const stampOf = (path: string): string => {
  const stat = unlessMissingSync(() => lstatSync(path, { bigint: true, throwIfNoEntry: false }))
  return stat === undefined ? 'none' : `${stat.ino}:${stat.ctimeNs}:${stat.size}`
}

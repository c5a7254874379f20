import type { Sha } from '../domain/names.ts'

export type AheadBehind = {
  readonly ahead: number
  readonly behind: number
  /** All best common ancestors with base, as `git merge-base --all`; undefined if that takes git. */
  readonly forks?: readonly Sha[]
}

/**
 * Part of the history in memory: every commit reachable from base or a tip, but not from all of them. Parents that are
 * not in it are common to all and don't count.
 */
export type Graph = {
  readonly commits: readonly Sha[]
  readonly index: ReadonlyMap<string, number>
  readonly parents: readonly (readonly number[])[]
  /** By commit: its parents that are common to all. */
  readonly outside: ReadonlyMap<number, readonly string[]>
}

/** Lines of `rev-list --parents`: the commit, then its parents. */
export const parseGraph = (output: string): Graph => {
  const lines = output.split('\n').filter((line) => line !== '')
  const commits = lines.map((line) => line.slice(0, line.indexOf(' ') < 0 ? line.length : line.indexOf(' ')) as Sha)
  const index = new Map(commits.map((commit, i) => [commit, i]))
  const outside = new Map<number, readonly string[]>()
  const parents = lines.map((line, i) => {
    const all = line.split(' ').slice(1)
    const others = all.filter((parent) => !index.has(parent as Sha))
    if (others.length > 0) outside.set(i, others)
    return all.flatMap((parent) => index.get(parent as Sha) ?? [])
  })
  return { commits, index, parents, outside }
}

/**
 * ahead: reachable from the tip, not from base. behind: reachable from base, not from the tip. `common`: the best common
 * ancestors of all, which bound the graph.
 */
export const positions = (
  graph: Graph,
  base: Sha,
  tips: readonly Sha[],
  common: readonly Sha[],
): Map<Sha, AheadBehind> => {
  const inBase = new Uint8Array(graph.parents.length)
  const baseSize = walk(graph, start(graph, base), (commit) => {
    if (inBase[commit] === 1) return false
    inBase[commit] = 1
    return true
  })
  const seen = new Int32Array(graph.parents.length)
  let round = 0
  const unseen = (commit: number): boolean => {
    if (seen[commit] === round) return false
    seen[commit] = round
    return true
  }
  // Most branches fork from base at a few commits; walk the history below each only once.
  const below = new Map<string, Shared>()
  const sharedFrom = (met: readonly number[]): Shared => {
    const key = met.toSorted((a, b) => a - b).join()
    const known = below.get(key)
    if (known !== undefined) return known
    round += 1
    const reached = new Set<string>()
    const size = walk(graph, met, (commit) => {
      for (const parent of graph.outside.get(commit) ?? []) reached.add(parent)
      return unseen(commit)
    })
    const shared = { size, forks: forksOf(graph, met, common, reached) }
    below.set(key, shared)
    return shared
  }
  const positionOf = (tip: Sha): AheadBehind => {
    const met = new Set<number>()
    round += 1
    const ahead = walk(graph, start(graph, tip), (commit) => {
      if (inBase[commit] !== 1) return unseen(commit)
      met.add(commit)
      return false
    })
    const { size, forks } = sharedFrom([...met])
    return { ahead, behind: baseSize - size, ...(forks && { forks }) }
  }
  return new Map(tips.map((tip) => [tip, positionOf(tip)]))
}

type Shared = { readonly size: number; readonly forks: readonly Sha[] | undefined }

/**
 * `met`: the first commits of base on the way down from a tip. If there is one, and it leads to everything that all have
 * in common, it is the only best common ancestor. If there is none, that is what all have in common.
 */
const forksOf = (
  { commits }: Graph,
  met: readonly number[],
  common: readonly Sha[],
  reached: ReadonlySet<string>,
): readonly Sha[] | undefined => {
  if (met.length === 0) return common.length > 1 ? undefined : common
  const only = met.length === 1 ? commits[met[0] ?? -1] : undefined
  return only !== undefined && common.every((sha) => reached.has(sha)) ? [only] : undefined
}

const start = (graph: Graph, sha: Sha): number[] => {
  const at = graph.index.get(sha)
  return at === undefined ? [] : [at]
}

/** Counts the commits that `enter` accepts. */
const walk = (graph: Graph, from: readonly number[], enter: (commit: number) => boolean): number => {
  const waiting = [...from]
  let count = 0
  for (let commit = waiting.pop(); commit !== undefined; commit = waiting.pop()) {
    if (!enter(commit)) continue
    count += 1
    for (const parent of graph.parents[commit] ?? []) waiting.push(parent)
  }
  return count
}

import type { Sha } from '../domain/names.ts'

export type AheadBehind = { readonly ahead: number; readonly behind: number }

/**
 * Part of the history in memory: every commit reachable from base or a tip, but not from all of them. Parents that are
 * not in it are common to all and don't count.
 */
export type Graph = { readonly index: ReadonlyMap<string, number>; readonly parents: readonly (readonly number[])[] }

/** Lines of `rev-list --parents`: the commit, then its parents. */
export const parseGraph = (output: string): Graph => {
  const lines = output.split('\n').filter((line) => line !== '')
  const index = new Map(
    lines.map((line, i) => [line.slice(0, line.indexOf(' ') < 0 ? line.length : line.indexOf(' ')), i]),
  )
  const parents = lines.map((line) =>
    line
      .split(' ')
      .slice(1)
      .flatMap((parent) => index.get(parent) ?? []),
  )
  return { index, parents }
}

/** ahead: reachable from the tip, not from base. behind: reachable from base, not from the tip. */
export const positions = (graph: Graph, base: Sha, tips: readonly Sha[]): Map<Sha, AheadBehind> => {
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
  // Most branches fork from base at a few commits; count the history below each only once.
  const below = new Map<string, number>()
  const sharedFrom = (forks: readonly number[]): number => {
    const key = forks.toSorted((a, b) => a - b).join()
    const known = below.get(key)
    if (known !== undefined) return known
    round += 1
    const size = walk(graph, forks, unseen)
    below.set(key, size)
    return size
  }
  const positionOf = (tip: Sha): AheadBehind => {
    const forks = new Set<number>()
    round += 1
    const ahead = walk(graph, start(graph, tip), (commit) => {
      if (inBase[commit] !== 1) return unseen(commit)
      forks.add(commit)
      return false
    })
    return { ahead, behind: baseSize - sharedFrom([...forks]) }
  }
  return new Map(tips.map((tip) => [tip, positionOf(tip)]))
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

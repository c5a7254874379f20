import type { Sha } from '../../domain/names.ts'
import { type Change, changesBetween, changesOfPairs, type Pair } from '../../git/changes.ts'
import type { Inquiry } from './merge-question.ts'

/** What changed between two commits; undefined if it is too much to compare. */
export type Differences = (from: Sha, to: Sha) => Promise<readonly Change[] | undefined>

const maxBytes = 16 * 1024 * 1024

/** Compares all these pairs in one process. Any other pair, and each one if that fails, costs a process. */
export const compare = async ({ git, repo, signal }: Inquiry, pairs: readonly Pair[]): Promise<Differences> => {
  const known = new Map<string, readonly Change[]>()
  if (pairs.length > 1) {
    const all = await changesOfPairs(git, repo, pairs, { maxBytes, signal }).catch(() => undefined)
    for (const [i, changes] of (all ?? []).entries()) known.set(keyOf(pairs[i]), changes)
  }
  return async (from, to) => known.get(keyOf({ from, to })) ?? changesBetween(git, repo, from, to, { maxBytes, signal })
}

const keyOf = (pair: Pair | undefined): string => `${pair?.from} ${pair?.to}`

import type { Sha } from '../../domain/names.ts'
import type { ReflogEntry } from '../../git/reflog.ts'

/** What a branch's reflog says about its own commits. */
export type OwnWork = {
  /** Commits made on the branch, newest first. */
  readonly made: readonly Sha[]
  /** Every move from the start to the tip is there and understood, so `made` is complete. */
  readonly complete: boolean
}

/**
 * A branch that was only fast-forwarded along base, and one that base was fast-forwarded to, look the same in the
 * graph. The reflog distinguishes them by each move: `commit: …` made something, `merge x: Fast-forward` did not.
 */
export const ownWork = (moves: readonly ReflogEntry[], start: Sha | undefined, tip: Sha): OwnWork => {
  const made: Sha[] = []
  let understood = true
  for (const move of moves) {
    const kind = kindOf(move)
    if (kind === 'made' && move.to !== undefined) made.unshift(move.to)
    if (kind === 'unknown') understood = false
  }
  return { made, complete: understood && unbroken(moves, start, tip) }
}

const kindOf = ({ from, to, message }: ReflogEntry): 'made' | 'moved' | 'unknown' => {
  if (from === to) return 'moved'
  if (/^(?:commit(?: \([a-z-]+\))?|cherry-pick|revert|am)(?::|$)/.test(message)) return 'made'
  if (/: Merge made by /.test(message)) return 'made'
  // A rebase without own commits ends on the very commit it was rebased onto.
  const onto = /\((?:finish)\): \S+ onto ([0-9a-f]+)$/.exec(message)?.[1]
  if (onto !== undefined) return onto === to ? 'moved' : 'made'
  if (/: (?:Fast-forward|fast-forward)$/.test(message)) return 'moved'
  if (/^(?:branch: (?:Created from|Reset to) |reset: moving to |checkout: |Branch: renamed |coppice\b)/.test(message)) {
    return 'moved'
  }
  return 'unknown'
}

/** No gap from the branch's creation, or its start, to the tip: reflogs expire, and tools move refs without logging. */
const unbroken = (moves: readonly ReflogEntry[], start: Sha | undefined, tip: Sha): boolean => {
  const first = moves[0]
  const last = moves.at(-1)
  if (first === undefined || last === undefined) return start === tip
  if (last.to !== tip) return false
  const fromTheStart = first.from === undefined || first.from === start || first.to === start
  return fromTheStart && moves.every((move, i) => i === 0 || move.from === moves[i - 1]?.to)
}

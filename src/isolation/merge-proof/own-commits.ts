import type { Sha } from '../../domain/names.ts'
import type { ReflogEntry } from '../../git/reflog.ts'

/** What a branch's reflog says about commits of its own. */
export type OwnWork = {
  /** Commits that were made on the branch, newest first. */
  readonly made: readonly Sha[]
  /** Every move from the start to the tip is there and understood, so what is not in `made` was not made. */
  readonly complete: boolean
}

/**
 * A branch that was merely fast-forwarded along base and one whose work base was fast-forwarded to look the same in the
 * graph. The reflog tells them apart by what each move was: `commit: …` made something, `merge x: Fast-forward` did not.
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
  // A rebase without commits of one's own ends on the very commit it was put onto.
  const onto = /\((?:finish)\): \S+ onto ([0-9a-f]+)$/.exec(message)?.[1]
  if (onto !== undefined) return onto === to ? 'moved' : 'made'
  if (/: (?:Fast-forward|fast-forward)$/.test(message)) return 'moved'
  if (/^(?:branch: (?:Created from|Reset to) |reset: moving to |checkout: |Branch: renamed |coppice\b)/.test(message)) {
    return 'moved'
  }
  return 'unknown'
}

/** From the branch's making, or from its start, to the tip without a gap: reflogs expire, and tools move refs without. */
const unbroken = (moves: readonly ReflogEntry[], start: Sha | undefined, tip: Sha): boolean => {
  const first = moves[0]
  const last = moves.at(-1)
  if (first === undefined || last === undefined) return start === tip
  if (last.to !== tip) return false
  const fromTheStart = first.from === undefined || first.from === start || first.to === start
  return fromTheStart && moves.every((move, i) => i === 0 || move.from === moves[i - 1]?.to)
}

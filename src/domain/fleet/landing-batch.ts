/*
 * Which part of a batch to test next. In: the results so far. Out: how many of its first branches to test together, or
 * the verdict. Branches are stacked in queue order, so the first n are one commit, with the base as n = 0.
 */

export type BatchSearch = {
  readonly size: number
  /** The first this many passed. 0: the base, which counts as green until it is tested. */
  readonly green: number
  /** The first this many failed. */
  readonly red: number | undefined
  /** Whether the base has passed. Undefined: unknown. */
  readonly base: boolean | undefined
}

export type BatchVerdict =
  /** The first `green` can land. `red`: the index of the one that fails on top of them. */
  | { readonly kind: 'verdict'; readonly green: number; readonly red: number | undefined }
  /** The base itself fails: no branch is to blame. */
  | { readonly kind: 'base-red' }

export type BatchStep = { readonly kind: 'test'; readonly size: number } | BatchVerdict

/** `base`: whether the base is known to pass. */
export const startSearch = (size: number, base: true | undefined): BatchSearch => ({
  size,
  green: 0,
  red: undefined,
  base,
})

/**
 * First all of them; on red, bisects between the longest prefix that passed and the shortest that failed. The one that
 * is blamed fails on top of a prefix that passed and lands, as it would if it were tested alone after them. If it's the
 * first, the base must pass without it.
 */
export const nextStep = ({ size, green, red, base }: BatchSearch): BatchStep => {
  if (red === undefined) {
    return green === size ? { kind: 'verdict', green, red: undefined } : { kind: 'test', size }
  }
  if (red - green > 1) return { kind: 'test', size: green + Math.ceil((red - green) / 2) }
  if (green > 0 || base === true) return { kind: 'verdict', green, red: green }
  return base === false ? { kind: 'base-red' } : { kind: 'test', size: 0 }
}

/** A prefix of this size passed or failed. */
export const learn = (search: BatchSearch, size: number, passed: boolean): BatchSearch => {
  if (size === 0) return { ...search, base: passed }
  return passed
    ? { ...search, green: Math.max(search.green, size) }
    : { ...search, red: Math.min(search.red ?? size, size) }
}

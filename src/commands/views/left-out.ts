import type { LeftOut } from '../../domain/removal/restore-point.ts'

const MOST_LINES = 5

/** A line for each item that wasn't kept; a long list ends with the number of others. */
export const describeLeftOut = (leftOut: readonly LeftOut[]): string[] => {
  const shown = leftOut.slice(0, MOST_LINES).map(({ path, reason }) => `${path} (${reason})`)
  const more = leftOut.length - shown.length
  return more > 0 ? [...shown, `and ${more} more`] : shown
}

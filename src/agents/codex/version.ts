import type { Failure } from '../program-failure.ts'

/** The first with `codex sandbox`, by which Coppice checks that commands can be sandboxed. */
const OLDEST_CODEX = '0.45.0'

/**
 * A refusal if this version is older than Coppice supports. A version that isn't numbers is given the benefit of the
 * doubt.
 */
export const tooOld = (version: string | undefined, { install }: { readonly install: string }): Failure | undefined => {
  if (version === undefined || isAtLeast(version, OLDEST_CODEX)) return undefined
  return {
    problem: `Codex ${version} is too old: Coppice needs ${OLDEST_CODEX} or newer.`,
    remedy: `Update it with ${install}@latest.`,
  }
}

export const isAtLeast = (version: string, oldest: string): boolean => {
  const [found, wanted] = [numbersOf(version), numbersOf(oldest)]
  const at = wanted.findIndex((number, index) => found[index] !== number)
  return at === -1 || !((found[at] ?? Number.NaN) < (wanted[at] ?? 0))
}

const numbersOf = (version: string): number[] => version.slice(0, 50).split('.').slice(0, 3).map(Number.parseFloat)

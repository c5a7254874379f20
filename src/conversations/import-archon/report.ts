import { type AppError, toAppError } from '../../domain/errors.ts'
import type { Work } from '../../domain/work.ts'
import type { Advice } from './advice.ts'

export type ImportKind = 'codebase' | 'environment' | 'conversation' | 'session'

/** An item left behind, named so that users find it in Archon, and why. */
export type ImportLeftOut = { readonly kind: ImportKind; readonly name: string; readonly reason: string }

export type ImportedEnvironment = {
  readonly codebase: string
  readonly work: Work
  /** Other work that finds it. */
  readonly aliases: readonly Work[]
  readonly branch: string
  readonly path: string
  /** Coppice may remove it. */
  readonly owned: boolean
  readonly lastActivityAt: number
  /** Git's paths in it were those of another machine, and are rewritten. */
  readonly relinked: boolean
}

/** What is set for a repository here, as it was in Archon. */
export type ImportedSettings = {
  readonly codebase: string
  readonly base?: string
  readonly agent?: string
  readonly github?: string
}

/** A repository in which no new worktree can be created after the import. */
export type OverLimit = {
  readonly codebase: string
  /** How many it has after the import. */
  readonly worktrees: number
  readonly limit: number
  /** How many of Archon's could still be taken over with `--own`. */
  readonly ownable: number
}

/** `known`: Coppice already had it. */
export type ImportCount = { readonly taken: number; readonly known: number; readonly leftOut: number }

export type ImportReport = {
  readonly dryRun: boolean
  readonly counts: Readonly<Record<ImportKind, ImportCount>>
  readonly codebases: readonly string[]
  readonly settings: readonly ImportedSettings[]
  readonly environments: readonly ImportedEnvironment[]
  /** Imported earlier, and now Coppice's own. */
  readonly handedOver: readonly ImportedEnvironment[]
  readonly overLimit: readonly OverLimit[]
  readonly advice: readonly Advice[]
  readonly leftOut: readonly ImportLeftOut[]
}

/** Rows are untrusted text: no cursor moves, line breaks or reversed text, and limited length. */
export const shown = (text: string): string =>
  text
    .slice(0, 300)
    // eslint-disable-next-line no-control-regex
    .replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, '?')

/** Such text never becomes an ID either: IDs are written to logs and terminals. */
// eslint-disable-next-line no-control-regex
export const hasControl = (text: string): boolean => /[\u0000-\u001f\u007f-\u009f]/.test(text) || !text.isWellFormed()

/** Why a row failed, as one phrase. */
export const reasonOf = (error: unknown): string => toAppError(error).message

/** Not this row's fault: all others would fail too. */
export const endsAll = (error: unknown): boolean => {
  const codes: readonly AppError['code'][] = ['disk-full', 'store-failed', 'git-unavailable', 'cancelled']
  return codes.includes(toAppError(error).code)
}

import type { KnownPlatforms } from '../../domain/platform-capabilities.ts'
import type { IsolationContext } from '../../isolation/context.ts'
import type { Environments } from '../../isolation/environments.ts'
import type { ArchonInstallation } from '../../store/archon/archon.ts'
import type { Advice } from './advice.ts'
import type { ArchonRoots } from './archon-names.ts'
import type { PathMap } from './path-map.ts'
import { endsAll, type ImportKind, type ImportLeftOut, reasonOf } from './report.ts'

export type ImportOptions = {
  readonly dryRun: boolean
  /** Take over the worktrees that Archon itself made, so that Coppice cleans them up. */
  readonly own: boolean
  readonly map: PathMap
  /** The directory of Archon's SQLite file. */
  readonly databaseDirectory?: string
  readonly signal: AbortSignal
}

/** Dependencies of every planning step. */
export type Planning = Omit<ImportOptions, 'dryRun'> & {
  readonly context: IsolationContext
  readonly environments: Environments
  readonly platforms: KnownPlatforms
  readonly archon: ArchonInstallation
  readonly roots: ArchonRoots
  readonly leftOut: ImportLeftOut[]
  readonly advice: Advice[]
}

/** Reports a bad row and continues. */
export const eachRow = async <Row>(
  { signal, leftOut }: { readonly signal: AbortSignal; readonly leftOut: ImportLeftOut[] },
  kind: ImportKind,
  rows: readonly Row[],
  nameOf: (row: Row) => string,
  work: (row: Row) => Promise<void>,
): Promise<void> => {
  for (const row of rows) {
    signal.throwIfAborted()
    try {
      await work(row)
    } catch (error) {
      if (signal.aborted || endsAll(error)) throw error
      leftOut.push({ kind, name: nameOf(row), reason: reasonOf(error) })
    }
  }
}

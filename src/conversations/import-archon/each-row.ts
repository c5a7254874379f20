import type { IsolationContext } from '../../isolation/context.ts'
import type { Environments } from '../../isolation/environments.ts'
import type { ArchonInstallation } from '../../store/archon/archon.ts'
import { endsAll, type ImportKind, reasonOf, type Recorder } from './report.ts'

export type ImportOptions = { readonly dryRun: boolean; readonly signal: AbortSignal }

/** Dependencies of every import step. */
export type Import = ImportOptions & {
  readonly context: IsolationContext
  readonly environments: Environments
  readonly archon: ArchonInstallation
  readonly record: Recorder
}

/** Reports a bad row and continues. */
export const eachRow = async <Row>(
  run: Import,
  kind: ImportKind,
  rows: readonly Row[],
  nameOf: (row: Row) => string,
  work: (row: Row) => Promise<void>,
): Promise<void> => {
  for (const row of rows) {
    run.signal.throwIfAborted()
    try {
      await work(row)
    } catch (error) {
      if (run.signal.aborted || endsAll(error)) throw error
      run.record.leftOut(kind, nameOf(row), reasonOf(error))
    }
  }
}

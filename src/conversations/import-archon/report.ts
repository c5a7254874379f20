import { type AppError, toAppError } from '../../domain/errors.ts'

export type ImportKind = 'codebase' | 'environment' | 'conversation' | 'session'

/** An item left behind, named so that users find it in Archon, and why. */
export type ImportLeftOut = { readonly kind: ImportKind; readonly name: string; readonly reason: string }

export type ImportedEnvironment = {
  readonly codebase: string
  readonly work: { readonly type: string; readonly id: string }
  readonly branch: string
  readonly path: string
}

/** `known`: Coppice already had it. */
export type ImportCount = { readonly taken: number; readonly known: number; readonly leftOut: number }

export type ImportReport = {
  readonly dryRun: boolean
  readonly counts: Readonly<Record<ImportKind, ImportCount>>
  readonly codebases: readonly string[]
  readonly environments: readonly ImportedEnvironment[]
  readonly leftOut: readonly ImportLeftOut[]
}

export type Recorder = {
  taken(kind: ImportKind): void
  known(kind: ImportKind): void
  leftOut(kind: ImportKind, name: string, reason: string): void
  codebase(name: string): void
  environment(environment: ImportedEnvironment): void
  report(dryRun: boolean): ImportReport
}

export const createRecorder = (): Recorder => {
  const numbers = { codebase: none(), environment: none(), conversation: none(), session: none() }
  const codebases: string[] = []
  const environments: ImportedEnvironment[] = []
  const leftOut: ImportLeftOut[] = []
  return {
    taken: (kind) => void numbers[kind].taken++,
    known: (kind) => void numbers[kind].known++,
    leftOut: (kind, name, reason) => {
      numbers[kind].leftOut++
      leftOut.push({ kind, name: shown(name), reason: shown(reason) })
    },
    codebase: (name) => void codebases.push(name),
    environment: ({ work, ...environment }) =>
      void environments.push({ ...environment, work: { type: work.type, id: shown(work.id) } }),
    report: (dryRun) => ({ dryRun, counts: numbers, codebases, environments, leftOut }),
  }
}

const none = (): { taken: number; known: number; leftOut: number } => ({ taken: 0, known: 0, leftOut: 0 })

/** Rows are untrusted text: no cursor moves, line breaks or reversed text, and limited length. */
const shown = (text: string): string =>
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

import type { IsolatedEnvironment } from '../domain/environment.ts'
import type { GateAnswer } from '../domain/removal/gates.ts'
import type { LeftOut } from '../domain/removal/restore-point.ts'
import type { Conversation } from '../store/store.ts'

/** What a cleanup did, and why it skipped the rest. A dry run gives the same report and touches nothing. */
export type CleanupReport = {
  readonly removed: readonly RemovedRow[]
  readonly skipped: readonly { readonly environment: IsolatedEnvironment; readonly reasons: readonly GateAnswer[] }[]
  readonly missing: readonly IsolatedEnvironment[]
  readonly orphans: readonly { readonly path: string; readonly branch: string | undefined }[]
  readonly errors: readonly { readonly environment: IsolatedEnvironment; readonly error: string }[]
  readonly dryRun: boolean
  /** For people: offline, what an interrupted operation left behind. */
  readonly notices: readonly string[]
}

export type RemovedRow = {
  readonly environment: IsolatedEnvironment
  /** Such as "merged: ancestor of origin/main", "no activity since …". */
  readonly why: string
  readonly restorePoint: string | undefined
  readonly branchDeleted: boolean
  /** What its restore point doesn't include. */
  readonly leftOut: readonly LeftOut[]
  readonly letGo: readonly Conversation[]
}

export const emptyReport = (dryRun: boolean): CleanupReport => ({
  removed: [],
  skipped: [],
  missing: [],
  orphans: [],
  errors: [],
  dryRun,
  notices: [],
})

/** Merges the reports of several codebases. */
export const joinReports = (reports: readonly CleanupReport[], dryRun: boolean): CleanupReport => ({
  removed: reports.flatMap((report) => report.removed),
  skipped: reports.flatMap((report) => report.skipped),
  missing: reports.flatMap((report) => report.missing),
  orphans: reports.flatMap((report) => report.orphans),
  errors: reports.flatMap((report) => report.errors),
  dryRun,
  notices: reports.flatMap((report) => report.notices),
})

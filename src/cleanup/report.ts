import type { IsolatedEnvironment } from '../domain/environment.ts'
import type { AppError } from '../domain/errors.ts'
import type { Notice } from '../domain/notice.ts'
import type { RemovalReason } from '../domain/removal/branch-note.ts'
import type { GateAnswer } from '../domain/removal/gates.ts'
import type { LeftOut } from '../domain/removal/restore-point.ts'
import type { Conversation } from '../store/store.ts'

/** What a cleanup did, and why it skipped the rest. A dry run gives the same report and touches nothing. */
export type CleanupReport = {
  readonly removed: readonly RemovedRow[]
  readonly skipped: readonly { readonly environment: IsolatedEnvironment; readonly reasons: readonly GateAnswer[] }[]
  readonly missing: readonly IsolatedEnvironment[]
  readonly orphans: readonly { readonly path: string; readonly branch: string | undefined }[]
  readonly errors: readonly { readonly environment: IsolatedEnvironment; readonly error: AppError }[]
  readonly dryRun: boolean
  /** Such as offline, or what an interrupted operation left behind. */
  readonly notices: readonly Notice[]
}

export type RemovedRow = {
  readonly environment: IsolatedEnvironment
  readonly why: RemovalReason
  readonly restorePoint: string | undefined
  readonly branchDeleted: boolean
  /** What its restore point doesn't include. */
  readonly leftOut: readonly LeftOut[]
  readonly detachedConversations: readonly Conversation[]
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

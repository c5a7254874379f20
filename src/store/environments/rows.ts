import { type RawBuilder, sql } from 'kysely'
import {
  type BranchOrigin,
  type EnvironmentStatus,
  type IsolatedEnvironment,
  liveStatuses,
} from '../../domain/environment.ts'
import { type BranchName, type Sha, toCodebaseId, toEnvironmentId } from '../../domain/names.ts'
import type { Trust } from '../../domain/trust.ts'
import type { Work, WorkType } from '../../domain/work.ts'
import { fromFlag, orNull, orUndefined, toFlag } from '../rows.ts'
import type { EnvironmentPatch } from './store.ts'
import type { EnvironmentRow } from '../tables.ts'

/**
 * As literals: SQLite uses a partial index only if the statement repeats its condition, and a bound parameter could be
 * anything.
 */
export const isLive = (column = 'status'): RawBuilder<boolean> =>
  sql<boolean>`${sql.ref(column)} in (${sql.join(liveStatuses.map((status) => sql.lit(status)))})`

export const isLiveStatus = (status: EnvironmentStatus): boolean =>
  (liveStatuses as readonly EnvironmentStatus[]).includes(status)

export const patchColumns = {
  path: 'path',
  owned: 'owned',
  branch: 'branch',
  branchOrigin: 'branch_origin',
  startSha: 'start_sha',
  adminName: 'admin_name',
  lastActivityAt: 'last_activity_at',
  prBranch: 'pr_branch',
  prNumber: 'pr_number',
  baseBranch: 'base_branch',
  trust: 'trust',
  vouchedSha: 'vouched_sha',
  vouchedLog: 'vouched_log',
  removedTip: 'removed_tip',
} as const satisfies Record<keyof EnvironmentPatch, keyof EnvironmentRow>

export const toRow = (environment: IsolatedEnvironment): EnvironmentRow => ({
  id: environment.id,
  host: environment.host,
  codebase_id: environment.codebaseId,
  work_type: environment.work.type,
  work_id: environment.work.id,
  provider: environment.provider,
  path: environment.path,
  branch: environment.branch,
  branch_origin: environment.branchOrigin,
  status: environment.status,
  owned: toFlag(environment.owned),
  created_by: environment.createdBy,
  created_at: environment.createdAt,
  last_activity_at: environment.lastActivityAt,
  start_sha: orNull(environment.startSha),
  admin_name: orNull(environment.adminName),
  base_branch: orNull(environment.baseBranch),
  trust: environment.trust,
  vouched_sha: orNull(environment.vouchedSha),
  vouched_log: orNull(environment.vouchedLog),
  removed_tip: orNull(environment.removedTip),
  pr_number: orNull(environment.prNumber),
  pr_branch: orNull(environment.prBranch),
  persistent: toFlag(environment.persistent === true),
})

export const fromRow = (row: EnvironmentRow): IsolatedEnvironment => ({
  id: toEnvironmentId(row.id),
  host: row.host,
  codebaseId: toCodebaseId(row.codebase_id),
  work: workOf(row),
  provider: row.provider,
  path: row.path,
  branch: row.branch as BranchName,
  branchOrigin: row.branch_origin as BranchOrigin,
  status: row.status as EnvironmentStatus,
  owned: fromFlag(row.owned),
  createdBy: row.created_by,
  createdAt: row.created_at,
  lastActivityAt: row.last_activity_at,
  startSha: orUndefined(row.start_sha) as Sha | undefined,
  adminName: orUndefined(row.admin_name),
  baseBranch: orUndefined(row.base_branch),
  trust: toTrust(row.trust),
  ...(row.vouched_sha !== null && { vouchedSha: row.vouched_sha as Sha }),
  ...(row.vouched_log !== null && { vouchedLog: row.vouched_log }),
  ...(row.removed_tip !== null && { removedTip: row.removed_tip as Sha }),
  prNumber: orUndefined(row.pr_number),
  prBranch: orUndefined(row.pr_branch),
  ...(fromFlag(row.persistent) && { persistent: true }),
})

/** A value unknown to this version proves nothing. */
const toTrust = (text: string): Trust => (text === 'own' || text === 'vouched' || text === 'lapsed' ? text : 'unproven')

export const workOf = (row: { work_type: string; work_id: string }): Work => ({
  type: row.work_type as WorkType,
  id: row.work_id,
})

import type { CleanupReport } from '../../cleanup/report.ts'
import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import type { Merged } from '../../domain/merge-proof.ts'
import type { EnvironmentFacts } from '../../isolation/facts.ts'
import type { Removable } from '../../isolation/removable.ts'
import { isClean } from '../../domain/removal/uncommitted.ts'
import { faultMessage } from './failure.ts'
import { describeNotices } from './notices.ts'
import { type ReasonJson, reasonJson } from './reasons.ts'
import type { View } from './view.ts'

/*
 * JSON for programs. Fields are listed by hand, so that a new field in a record never becomes part of the interface by
 * accident. Unknown values are null; times are ISO 8601.
 */

/** JSON names the codebase; records have only its ID. */
export type NameOf = (codebaseId: string) => string

export const environmentJson = (environment: IsolatedEnvironment, nameOf: NameOf) => ({
  id: environment.id,
  codebase: nameOf(environment.codebaseId),
  work: { type: environment.work.type, id: environment.work.id },
  provider: environment.provider,
  path: environment.path,
  branch: environment.branch,
  status: environment.status,
  owned: environment.owned,
  createdBy: environment.createdBy,
  createdAt: new Date(environment.createdAt).toISOString(),
})

export const factsJson = (facts: EnvironmentFacts, nameOf: NameOf) => ({
  ...environmentJson(facts.environment, nameOf),
  current: facts.current,
  dirty: facts.dirty === undefined ? null : !isClean(facts.dirty),
  ahead: facts.ahead ?? null,
  behind: facts.behind ?? null,
  merged: mergedJson(facts.merged),
  lastActivityAt: new Date(facts.lastActivityAt).toISOString(),
  conversations: facts.conversations,
  inUse: facts.inUse.by.length > 0,
  cleanup: removableJson(facts.removable),
})

/** Whether cleanup would remove it now, and why not. Null: it has no reason to. */
const removableJson = (removable: Removable): { why: 'merged' | 'stale'; heldBy: ReasonJson[] } | null => {
  switch (removable.kind) {
    case 'active':
      return null
    case 'merged':
    case 'stale':
      return { why: removable.kind, heldBy: [] }
    case 'held':
      return { why: removable.as, heldBy: removable.reasons.map(reasonJson) }
  }
}

/** *empty* isn't merged: there was nothing to merge. *Cannot tell* is null. */
const mergedJson = (merged: Merged): { value: boolean | null; proof: string | null; pullRequest?: number } => ({
  value: merged.value === 'cannot-tell' ? null : merged.value === 'yes',
  proof: merged.value === 'yes' ? merged.proof : null,
  ...(merged.value === 'yes' && merged.proof === 'forge' && { pullRequest: merged.pullRequest.number }),
})

export const reportJson = (report: CleanupReport, nameOf: NameOf, view: Pick<View, 'commandText' | 'chat'>) => ({
  removed: report.removed.map(({ environment, leftOut }) => ({
    ...environmentJson(environment, nameOf),
    leftOut: leftOut.map(({ path, reason }) => ({ path, reason })),
  })),
  skipped: report.skipped.map(({ environment, reasons }) => ({
    environment: environmentJson(environment, nameOf),
    reasons: reasons.map(reasonJson),
  })),
  missing: report.missing.map((environment) => environmentJson(environment, nameOf)),
  orphans: report.orphans.map(({ path, branch }) => ({ path, branch: branch ?? null })),
  errors: report.errors.map(({ environment, error }) => ({
    environment: environmentJson(environment, nameOf),
    error: faultMessage(error, view),
  })),
  dryRun: report.dryRun,
  notices: describeNotices(report.notices, view),
})

export const codebaseJson = (codebase: Codebase) => ({
  id: codebase.id,
  name: codebase.name,
  path: codebase.checkoutPath ?? codebase.repoPath,
  repository: codebase.repoPath,
  remote: codebase.remote ?? null,
  url: codebase.remoteUrl ?? null,
  github: codebase.github ?? null,
  base: codebase.base ?? null,
  agent: codebase.defaultAgent ?? null,
  cloned: codebase.cloned,
  createdAt: new Date(codebase.createdAt).toISOString(),
})

/*
 * Cleanup. In: a codebase, and whether to remove merged or stale environments. Out: a report of what was removed and
 * what was skipped, with reasons.
 */
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { toAppError } from '../domain/errors.ts'
import type { StaleBase } from '../domain/merge-proof.ts'
import type { Notice } from '../domain/notice.ts'
import type { RemovalReason } from '../domain/removal/branch-note.ts'
import { reasonsOf } from '../domain/reasoned-error.ts'
import { freshen } from '../isolation/codebases/base.ts'
import type { Fresh } from '../isolation/codebases/base-branch.ts'
import type { IsolationContext } from '../isolation/context.ts'
import { freshBase } from '../isolation/codebases/fresh-base.ts'
import { movedNotice } from '../isolation/moved.ts'
import { type Environments } from '../isolation/environments.ts'
import { followRenames, orphans, presenceOf } from '../isolation/provider-of.ts'
import type { RemoveOptions, RemoveOutcome } from '../isolation/remove-outcome.ts'
import { expireRestorePoints, reconcile } from '../isolation/reconcile.ts'
import { followLink } from '../isolation/codebases/recognise.ts'
import { assertRepository } from '../isolation/codebases/repository-place.ts'
import {
  type MergeStatus,
  mergeStatuses,
  mergeStatusesWithForge,
  withoutMergeProof,
} from '../isolation/merge-proof/merge-status.ts'
import { cleanupTrigger } from '../isolation/removable.ts'
import { type CleanupReport, emptyReport, type RemovedRow } from './report.ts'

export type SweepOptions = {
  readonly dryRun?: boolean
  /** Only merged or only stale ones (default: both). */
  readonly only?: 'merged' | 'stale'
  /** The conversation that asks doesn't block the removal of its own environment. */
  readonly askedBy?: string
}

type Candidate = {
  readonly mergeStatus: MergeStatus
  readonly trigger: 'merged' | 'stale'
  readonly why: RemovalReason
}

/**
 * One cycle over a codebase: removes merged and stale environments, records missing ones, reports orphans. Everything
 * goes through the one removal function and its gates. One failing environment never stops the cycle.
 */
export const runScheduledCleanup = async (
  context: IsolationContext,
  provider: Environments,
  known: Codebase,
  options: SweepOptions = {},
): Promise<CleanupReport> => {
  assertRepository(known)
  const dryRun = options.dryRun === true
  const codebase = dryRun ? known : await followLink(context, known)
  const draft = mutableReport(emptyReport(dryRun))
  if (!dryRun) {
    const { settled, left, moved } = await reconcile(context, codebase)
    draft.notices.push(...moved.map(movedNotice), ...settled, ...left)
  }
  const fresh = await freshen(context, codebase, { maxAgeMs: 0 })
  const live = await context.store.environments.live(codebase.id)
  if (live.length > 0) await sweepLive(context, provider, codebase, fresh, draft, options)
  draft.orphans.push(...(await orphans(context, codebase)).map(({ path, branch }) => ({ path, branch })))
  if (!dryRun) {
    await expireRestorePoints(context, codebase).catch((error: unknown) => {
      draft.notices.push({ kind: 'restore-points-not-expired', message: toAppError(error).message })
    })
    await context.store.mergedPullRequests.deleteBefore(codebase.id, context.clock() - rememberMergesMs)
    await recordReport(context, codebase, draft)
  }
  return draft
}

/** Older ones are deleted: the code host is asked again about a worktree that still exists. */
const rememberMergesMs = 90 * 24 * 60 * 60 * 1000

const sweepLive = async (
  context: IsolationContext,
  provider: Environments,
  codebase: Codebase,
  fresh: Fresh,
  draft: Draft,
  options: SweepOptions,
): Promise<void> => {
  const { base, stale } = await freshBase(context, codebase, fresh)
  const live = await context.store.environments.live(codebase.id)
  const followed = await followRenames(context, codebase, live, options)
  draft.notices.push(...followed.flatMap(({ notices }) => notices))
  const environments = followed.map(({ environment }) => environment)
  // On a stale base nothing counts as merged, whoever says so.
  const { statuses: all, notices } =
    stale === undefined
      ? await mergeStatusesWithForge(context, codebase, base, environments)
      : { statuses: await mergeStatuses(context, codebase, base, environments), notices: [] }
  draft.notices.push(...notices)
  if (stale !== undefined) draft.notices.push(staleNotice(stale, fresh, all))
  for (const mergeStatus of all) {
    if (await isMissing(context, codebase, mergeStatus.environment)) draft.missing.push(mergeStatus.environment)
    else {
      const candidate = removalCandidate(
        context,
        stale === undefined ? mergeStatus : withoutMergeProof(mergeStatus, stale),
        options,
        base.name,
      )
      if (candidate !== undefined) await removeOne(provider, candidate, draft, { ...options, staleBase: stale })
    }
  }
}

const staleNotice = (why: StaleBase, { detail }: Fresh, all: readonly MergeStatus[]): Notice => {
  const branches = all.filter((one) => one.merged.value === 'yes').map(({ environment }) => environment.branch)
  return { kind: 'nothing-removed-as-merged', why, message: detail, branches }
}

type Draft = {
  -readonly [K in keyof CleanupReport]: CleanupReport[K] extends readonly (infer T)[] ? T[] : CleanupReport[K]
}
const mutableReport = (report: CleanupReport): Draft => ({
  removed: [...report.removed],
  skipped: [...report.skipped],
  missing: [...report.missing],
  orphans: [...report.orphans],
  errors: [...report.errors],
  dryRun: report.dryRun,
  notices: [...report.notices],
})

const isMissing = async (
  context: Pick<IsolationContext, 'providers'>,
  codebase: Codebase,
  environment: IsolatedEnvironment,
): Promise<boolean> =>
  environment.status === 'missing' || (await presenceOf(context, codebase, environment)).state === 'missing'

const removalCandidate = (
  context: Pick<IsolationContext, 'clock' | 'settings'>,
  mergeStatus: MergeStatus,
  { only }: SweepOptions,
  baseName: string,
): Candidate | undefined => {
  const { environment, merged, lastActivityAt } = mergeStatus
  const trigger = cleanupTrigger(context, mergeStatus, only)
  switch (trigger) {
    case undefined:
      return undefined
    case 'merged':
      return {
        mergeStatus,
        trigger,
        why: { kind: 'proven-merged', merged, base: environment.baseBranch ?? baseName },
      }
    case 'stale':
      return { mergeStatus, trigger, why: { kind: 'idle-since', at: lastActivityAt } }
  }
}

const removeOne = async (
  provider: Environments,
  { mergeStatus: { environment }, trigger, why }: Candidate,
  draft: Draft,
  { dryRun = false, askedBy, staleBase }: SweepOptions & Pick<RemoveOptions, 'staleBase'>,
): Promise<void> => {
  try {
    const outcome = await provider.destroy(environment, {
      trigger,
      dryRun,
      why,
      staleBase,
      ...(askedBy !== undefined && { askedBy }),
    })
    if (outcome.outcome === 'refused') draft.skipped.push({ environment, reasons: outcome.reasons })
    else draft.removed.push(removedRow(outcome, why))
  } catch (error) {
    draft.errors.push({ environment, error: toAppError(error) })
  }
}

const removedRow = (outcome: Exclude<RemoveOutcome, { outcome: 'refused' }>, why: RemovalReason): RemovedRow => ({
  environment: outcome.environment,
  why,
  restorePoint: outcome.outcome === 'removed' ? outcome.restorePoint?.id : undefined,
  branchDeleted: outcome.outcome === 'removed' && outcome.branchDeleted,
  leftOut: outcome.outcome === 'released' ? [] : outcome.leftOut,
  detachedConversations:
    outcome.outcome === 'removed' || outcome.outcome === 'released' ? outcome.detachedConversations : [],
})

const recordReport = async (
  context: Pick<IsolationContext, 'store' | 'clock' | 'ids'>,
  codebase: Codebase,
  draft: Draft,
): Promise<void> => {
  await context.store.events.append({
    id: context.ids(),
    at: context.clock(),
    kind: 'cleanup',
    codebaseId: codebase.id,
    environmentId: undefined,
    data: {
      removed: draft.removed.map(({ environment, why, leftOut }) => ({
        id: environment.id,
        branch: environment.branch,
        why,
        leftOut,
      })),
      skipped: draft.skipped.map(({ environment, reasons }) => ({
        id: environment.id,
        branch: environment.branch,
        reasons,
      })),
      missing: draft.missing.map(({ id }) => id),
      orphans: draft.orphans,
      errors: draft.errors.map(({ environment, error }) => ({
        id: environment.id,
        error: error.message,
        reasons: reasonsOf(error),
      })),
      notices: draft.notices,
    },
  })
}

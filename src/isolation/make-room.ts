import type { Codebase } from '../domain/environment.ts'
import { toAppError } from '../domain/errors.ts'
import type { StaleBase } from '../domain/merge-proof.ts'
import type { EnvironmentId } from '../domain/names.ts'
import type { Notice } from '../domain/notice.ts'
import { type GateAnswer, cannotTell } from '../domain/removal/gates.ts'
import { freshen } from './codebases/base.ts'
import type { IsolationContext } from './context.ts'
import { freshBase } from './codebases/fresh-base.ts'
import {
  type MergeStatus,
  mergeStatuses,
  mergeStatusesWithForge,
  withoutMergeProof,
} from './merge-proof/merge-status.ts'
import type { Environments } from './environments.ts'
import type { LimitReached } from './provider.ts'
import { cleanupTrigger, countRemovable, findRemovable } from './removable.ts'
import type { LimitReport } from './resolve/resolution.ts'

export type Room = {
  readonly removed: number
  readonly notices: readonly Notice[]
  readonly stale: StaleBase | undefined
  /** Of those that are still there. */
  readonly statuses: readonly MergeStatus[]
  /** Merged, and kept by these gates. */
  readonly refused: ReadonlyMap<EnvironmentId, readonly GateAnswer[]>
}

/** At the limit, removes what is provably merged. Automatic, so every gate applies and nothing is forced. */
export const cleanupToMakeRoom = async (
  context: IsolationContext,
  isolation: Environments,
  codebase: Codebase,
): Promise<Room> => {
  context.progress(`${codebase.name} has reached its limit: looking for merged worktrees`)
  const fresh = await freshen(context, codebase, { maxAgeMs: 0 })
  const { base, stale } = await freshBase(context, codebase, fresh)
  const notices: Notice[] = []
  const refused = new Map<EnvironmentId, readonly GateAnswer[]>()
  const removed = new Set<EnvironmentId>()
  if (stale !== undefined) {
    const all = await mergeStatuses(context, codebase, base)
    return { removed: 0, notices, stale, statuses: all.map((one) => withoutMergeProof(one, stale)), refused }
  }
  const { statuses } = await mergeStatusesWithForge(context, codebase, base)
  for (const status of statuses) {
    const { environment } = status
    if (cleanupTrigger(context, status, 'merged') === undefined) continue
    try {
      const outcome = await isolation.destroy(environment, { trigger: 'room' })
      if (outcome.outcome === 'refused') refused.set(environment.id, outcome.reasons)
      if (outcome.outcome !== 'removed') continue
      removed.add(environment.id)
      notices.push({ kind: 'room-made', branch: environment.branch, leftOut: outcome.leftOut })
    } catch (error) {
      // One failed removal must not stop the others.
      context.log.warn('a merged environment could not be removed', {
        branch: environment.branch,
        error: String(error),
      })
      refused.set(environment.id, [cannotTell('ours', { kind: 'unknown', why: toAppError(error).message })])
    }
  }
  const left = statuses.filter(({ environment }) => !removed.has(environment.id))
  return { removed: removed.size, notices, stale, statuses: left, refused }
}

/** What the gates said while room was made counts: only what is stale is asked about. */
export const limitReport = async (
  context: IsolationContext,
  codebase: Codebase,
  { limit, active: count }: LimitReached,
  { stale: unknownMerged, statuses, refused }: Pick<Room, 'stale' | 'statuses' | 'refused'>,
): Promise<LimitReport> => {
  const found = await findRemovable(context, codebase, statuses, { refused })
  const { merged, stale, held } = countRemovable(found.values())
  const active = count - merged - stale - held
  return { codebase: codebase.name, limit, count, merged, stale, held, active, unknownMerged }
}

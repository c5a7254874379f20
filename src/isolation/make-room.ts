import type { Codebase } from '../domain/environment.ts'
import type { StaleBase } from '../domain/merge-proof.ts'
import type { Notice } from '../domain/notice.ts'
import { isStale } from '../domain/stale.ts'
import { freshen } from './codebases/base.ts'
import type { IsolationContext } from './context.ts'
import { freshBase } from './codebases/fresh-base.ts'
import { type MergeStatus, mergeStatuses } from './merge-proof/merge-status.ts'
import type { Environments } from './environments.ts'
import type { LimitReached } from './provider.ts'
import type { LimitReport } from './resolution.ts'

/** At the limit, removes what is provably merged. Automatic, so every gate applies and nothing is forced. */
export const cleanupToMakeRoom = async (
  context: IsolationContext,
  isolation: Environments,
  codebase: Codebase,
): Promise<{ removed: number; notices: Notice[]; stale: StaleBase | undefined }> => {
  context.progress(`${codebase.name} has reached its limit: looking for merged worktrees`)
  const fresh = await freshen(context, codebase, { maxAgeMs: 0 })
  const { base, stale } = await freshBase(context, codebase, fresh)
  const notices: Notice[] = []
  if (stale !== undefined) return { removed: 0, notices, stale }
  for (const { environment, merged } of await mergeStatuses(context, codebase, base)) {
    // Skip adopted ones, as the sweep does: removing one only stops tracking it, and nobody asked to.
    if (merged.value !== 'yes' || !environment.owned || environment.status !== 'active') continue
    try {
      const outcome = await isolation.destroy(environment, { trigger: 'room' })
      if (outcome.outcome !== 'removed') continue
      notices.push({ kind: 'room-made', branch: environment.branch, leftOut: outcome.leftOut })
    } catch (error) {
      // One failed removal must not stop the others.
      context.log.warn('a merged environment could not be removed', {
        branch: environment.branch,
        error: String(error),
      })
    }
  }
  return { removed: notices.length, notices, stale }
}

export const limitReport = async (
  context: IsolationContext,
  codebase: Codebase,
  { limit, active: count }: LimitReached,
  unknownMerged: StaleBase | undefined,
): Promise<LimitReport> => {
  const all = (await mergeStatuses(context, codebase)).filter(({ environment }) => environment.status === 'active')
  const isMerged = ({ merged }: MergeStatus): boolean => unknownMerged === undefined && merged.value === 'yes'
  const merged = all.filter(isMerged).length
  const stale = all.filter((one) => !isMerged(one) && looksStale(context, one)).length
  return { codebase: codebase.name, limit, count, merged, stale, active: count - merged - stale, unknownMerged }
}

const looksStale = (context: Pick<IsolationContext, 'clock' | 'settings'>, { lastActivityAt }: MergeStatus): boolean =>
  isStale(lastActivityAt, context.settings.staleDays, context.clock())

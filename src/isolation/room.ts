import type { Codebase } from '../domain/environment.ts'
import { describeLeftOut } from '../domain/restore-point.ts'
import { isStale } from '../domain/stale.ts'
import { freshen } from './base.ts'
import type { IsolationContext } from './context.ts'
import { type Standing, standings } from './standing.ts'
import type { IsolationProvider, LimitReached } from './provider.ts'

/** The numbers behind the limit message; the words are the speaker's. */
export type LimitReport = {
  readonly codebase: string
  readonly limit: number
  readonly count: number
  readonly merged: number
  readonly stale: number
  readonly active: number
}

/** At the limit: first clear what is provably merged. Automation, so every gate holds and nothing is forced. */
export const cleanupToMakeRoom = async (
  context: IsolationContext,
  provider: IsolationProvider,
  codebase: Codebase,
): Promise<{ removed: number; notices: string[] }> => {
  context.progress(`the limit of ${codebase.name} is reached: looking for merged environments`)
  await freshen(context, codebase, { maxAgeMs: 0 })
  const notices: string[] = []
  for (const { environment, merged } of await standings(context, codebase)) {
    // Adopted ones are left, as in the sweep: letting go of one unasked would make room by forgetting.
    if (merged.value !== 'yes' || !environment.owned || environment.status !== 'active') continue
    try {
      const outcome = await provider.destroy(environment, { trigger: 'room' })
      if (outcome.outcome !== 'removed') continue
      const lost = describeLeftOut(outcome.leftOut)
      const without = lost.length === 0 ? '' : ` (not kept: ${lost.join(', ')})`
      notices.push(`Removed merged worktree \`${environment.branch}\` to make room${without}`)
    } catch (error) {
      // One that cannot be removed must not keep the next from making room.
      context.log.warn('a merged environment could not be removed', {
        branch: environment.branch,
        error: String(error),
      })
    }
  }
  return { removed: notices.length, notices }
}

export const limitReport = async (
  context: IsolationContext,
  codebase: Codebase,
  { limit, active: count }: LimitReached,
): Promise<LimitReport> => {
  const all = (await standings(context, codebase)).filter(({ environment }) => environment.status === 'active')
  const merged = all.filter((one) => one.merged.value === 'yes').length
  const stale = all.filter((one) => one.merged.value !== 'yes' && looksStale(context, one)).length
  return { codebase: codebase.name, limit, count, merged, stale, active: count - merged - stale }
}

const looksStale = (context: IsolationContext, { lastActivityAt }: Standing): boolean =>
  isStale(lastActivityAt, context.settings.staleDays, context.clock())

/** The limit message of SPEC.md section 3, the same on every platform. */
export const limitMessage = ({ codebase, count, merged, stale, active }: LimitReport, staleDays: number): string =>
  [
    `You have ${count} active worktrees for **${codebase}** (limit reached).`,
    ` ${merged} merged (can be removed)   ${stale} stale (no activity in ${staleDays}+ days)   ${active} active`,
    ' /worktree cleanup merged · /worktree cleanup stale · /worktree list · /worktree remove <name>',
  ].join('\n')

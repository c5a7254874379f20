import type { Advice } from './advice.ts'
import { adviseOnHome } from './config-advice.ts'
import { type PlannedCodebase, planCodebases } from './plan-codebases.ts'
import { type PlannedConversation, planConversations } from './plan-conversations.ts'
import { type PlannedEnvironment, planEnvironments } from './plan-environments.ts'
import type { Planning } from './planning.ts'
import type { ImportLeftOut, OverLimit } from './report.ts'
import { adviseOnVariables } from './variables-advice.ts'

/** All that an import does. What the report says follows from this alone. */
export type Plan = {
  readonly codebases: readonly PlannedCodebase[]
  /** Rows of Archon's about repositories that are registered already, or twice in its database. */
  readonly knownCodebases: number
  readonly environments: readonly PlannedEnvironment[]
  readonly conversations: readonly PlannedConversation[]
  readonly leftOut: readonly ImportLeftOut[]
  readonly overLimit: readonly OverLimit[]
  readonly advice: readonly Advice[]
}

/** Reads everything and changes nothing. */
export const makePlan = async (planning: Planning): Promise<Plan> => {
  const { context, leftOut, advice } = planning
  context.progress('looking at the repositories')
  const codebases = await planCodebases(planning)
  context.progress('looking at the worktrees')
  const { list: environments, environmentOf } = await planEnvironments(planning, codebases)
  const conversations = await planConversations(planning, codebases, environmentOf)
  await adviseOnHome(planning)
  await adviseOnVariables(planning)
  const overLimit = await overLimitIn(planning, codebases.list, environments)
  const { list, known: knownCodebases } = codebases
  return { codebases: list, knownCodebases, environments, conversations, leftOut, overLimit, advice }
}

/** Adopted worktrees count, too. Missing ones don't: they have nothing on disk. */
const overLimitIn = async (
  { context: { store, settings } }: Planning,
  codebases: readonly PlannedCodebase[],
  environments: readonly PlannedEnvironment[],
): Promise<OverLimit[]> => {
  const over: OverLimit[] = []
  const limit = settings.worktreesPerCodebase
  for (const planned of codebases) {
    const live = await store.environments.live(planned.codebase.id)
    const theirs = environments.filter(({ codebase }) => codebase === planned)
    const added = theirs.filter(({ existing }) => existing === undefined).length
    const worktrees = live.filter(({ status }) => status !== 'missing').length + added
    if (added === 0 || worktrees < limit) continue
    const ownable = theirs.filter((one) => one.ownable !== undefined && one.own === undefined).length
    over.push({ codebase: planned.codebase.name, worktrees, limit, ownable })
  }
  return over
}

import type { DoneRefusal } from '../../../domain/fleet/done-refusal.ts'
import { isClean } from '../../../domain/removal/uncommitted.ts'
import { toAppError } from '../../../domain/errors.ts'
import { branchTip } from '../../../runs/branch-tip.ts'
import { providerOf } from '../../../isolation/provider-of.ts'
import { treeOf } from '../../tree.ts'
import { refusal, type Step, type StepSubject } from '../step.ts'
import type { FleetContext } from '../../context.ts'

/**
 * Checks that the agent has a hooked item and that its worktree is usable, on its branch, and fully committed. Reports
 * all problems.
 */
export const validate: Step = async (context, subject) => {
  const { isolation } = context
  const { codebase, environment, signal } = subject
  const hook = hookProblem(subject)
  if (hook !== undefined || environment === undefined)
    return refusal(hook ?? { kind: 'no-item', agent: subject.agent.name })
  const tree = await treeOf(isolation, codebase, environment).catch((error: unknown) => ({ error: toAppError(error) }))
  const { path, branch } = environment
  if ('error' in tree) return refusal({ kind: 'worktree', path, why: tree.error.message })
  const provider = await providerOf(isolation, environment)
  const why: DoneRefusal[] = []
  const head = await provider.headBranch(tree)
  if (head !== branch) why.push({ kind: 'other-branch', path, head, branch })
  const { dirty } = await provider.glance(isolation, tree, { signal })
  if (!isClean(dirty)) why.push({ kind: 'uncommitted', path, work: dirty })
  if (why.length === 0 && !(await hasCommits(context, subject))) why.push({ kind: 'no-commits', branch })
  return why.length > 0 ? refusal(...why) : { state: 'done' }
}

/** `discard` accepts uncommitted changes and a branch without commits. */
export const validateDiscard: Step = async (_context, subject) => {
  const problem = hookProblem(subject)
  return problem === undefined ? { state: 'done' } : refusal(problem)
}

const hookProblem = ({ agent, item }: StepSubject): DoneRefusal | undefined => {
  if (item === undefined) return { kind: 'no-item', agent: agent.name }
  return item.state === 'hooked' ? undefined : { kind: 'item-state', itemId: item.id, state: item.state }
}

/** True if unknown: for a branch that existed before the worktree, the push finds out. */
const hasCommits = async ({ isolation }: FleetContext, { codebase, environment }: StepSubject): Promise<boolean> => {
  if (environment?.startSha === undefined) return true
  const tip = await branchTip(isolation, codebase, environment)
  return tip !== undefined && tip !== environment.startSha
}

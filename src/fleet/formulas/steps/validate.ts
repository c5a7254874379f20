import type { DoneRefusal } from '../../../domain/fleet/done-refusal.ts'
import { isClean } from '../../../domain/removal/uncommitted.ts'
import { toAppError } from '../../../domain/errors.ts'
import { branchTip } from '../../../runs/branch-tip.ts'
import { providerOf } from '../../../isolation/provider-of.ts'
import { treeOf } from '../../tree.ts'
import { refusal, type Step, type StepSubject } from '../step.ts'
import type { FleetContext } from '../../context.ts'

/** This worktree, this branch, an item in hand, and nothing that isn't committed. All reasons, not only the first. */
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

/** What is thrown away needs no commits, and may be anything. */
export const validateDiscard: Step = async (_context, subject) => {
  const problem = hookProblem(subject)
  return problem === undefined ? { state: 'done' } : refusal(problem)
}

const hookProblem = ({ agent, item }: StepSubject): DoneRefusal | undefined => {
  if (item === undefined) return { kind: 'no-item', agent: agent.name }
  return item.state === 'hooked' ? undefined : { kind: 'item-state', itemId: item.id, state: item.state }
}

/** Where the branch began isn't known for one that existed before: then the push finds out. */
const hasCommits = async ({ isolation }: FleetContext, { codebase, environment }: StepSubject): Promise<boolean> => {
  if (environment?.startSha === undefined) return true
  const tip = await branchTip(isolation, codebase, environment)
  return tip !== undefined && tip !== environment.startSha
}

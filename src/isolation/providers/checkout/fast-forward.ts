import { AppError } from '../../../domain/errors.ts'
import { resolveCommit, updateRefs } from '../../../git/refs.ts'
import type { IsolationContext } from '../../context.ts'
import type { Plan } from './plan.ts'

/** Fast-forwards a local branch that is merely behind its pull request before it is checked out. */
export const fastForward = async (context: Pick<IsolationContext, 'git'>, plan: Plan): Promise<void> => {
  if (!plan.fastForward) return
  const { from, to } = plan.fastForward
  const moved = await updateRefs(context.git, plan.repo, [{ update: `refs/heads/${plan.branch}`, to, from }], {
    reason: 'coppice: fast-forward to the pull request',
  })
  // Already done when a spare was tried first.
  if (!moved.ok && (await resolveCommit(context.git, plan.repo, `refs/heads/${plan.branch}`)) === to) return
  if (!moved.ok) throw new AppError('branch-in-use', `${plan.branch} moved while it was being brought up to date`)
}

import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import type { Work } from '../../domain/work.ts'
import type { Tree } from '../../git/door.ts'
import type { Setting } from '../../git/neutral.ts'
import { resolveCommit, updateRefs } from '../../git/refs.ts'
import type { JournalEntry } from '../../store/store.ts'
import type { IsolationContext } from '../context.ts'
import type { Plan } from './plan.ts'

export type Making = {
  readonly context: IsolationContext
  readonly codebase: Codebase
  readonly kind: 'create' | 'restore'
  readonly environment: IsolatedEnvironment
  readonly plan: Plan
  readonly aliases: readonly Work[]
  readonly limit: number | undefined
  readonly useSpare: boolean
  /** The restore point that is being brought back. */
  readonly pointId?: string
  /** For the checkout; by default those that fit the plan's trust. */
  readonly settings?: readonly Setting[]
  readonly signal: AbortSignal | undefined
}

export type Made = { readonly tree: Tree; readonly entry: JournalEntry; readonly fromSpare: boolean }

/** A local branch that is merely behind its pull request moves forward before it is checked out. */
export const moveForward = async (context: IsolationContext, plan: Plan): Promise<void> => {
  if (!plan.fastForward) return
  const { from, to } = plan.fastForward
  const moved = await updateRefs(context.git, plan.repo, [{ update: `refs/heads/${plan.branch}`, to, from }], {
    reason: 'coppice: fast-forward to the pull request',
  })
  // Done before, when a spare was tried first.
  if (!moved.ok && (await resolveCommit(context.git, plan.repo, `refs/heads/${plan.branch}`)) === to) return
  if (!moved.ok) throw new AppError('branch-in-use', `${plan.branch} moved while it was being brought up to date`)
}

import { AppError, toAppError } from '../../../domain/errors.ts'
import type { FormulaRun } from '../../../domain/fleet/formula.ts'
import { identityWord } from '../../../domain/process-identity.ts'
import { isInside } from '../../caller.ts'
import { endSession, forgetFiles, isLatestLife } from '../../end-session.ts'
import type { FleetContext } from '../../context.ts'
import { noteInWorktree } from '../../items/note-in-worktree.ts'
import type { Step, StepSubject } from '../step.ts'

/**
 * The agent goes: its session ends and is confirmed dead, then its environment is removed through the gates, unless it
 * waits for a merge. A crew member stays; only its hook is gone.
 */
export const leave: Step = async (context, subject) => {
  const { isolation } = context
  const { run, agent, codebase, environment } = subject
  if (agent.kind === 'crew') {
    await noteInWorktree(context, codebase, environment, run.itemId)
    return {
      state: 'done',
      record: async (store) => void (await store.fleetAgents.move(agent.id, 'finishing', 'working')),
    }
  }
  if (isInside(isolation, agent)) {
    // Whoever ends a session must not be part of it.
    await context.inBackground(['leave', run.id, identityWord(isolation.self)])
    return { state: 'handed-over' }
  }
  if (!(await endSession(context, agent))) {
    throw new AppError('busy', `couldn't end the session of ${agent.name}: something of it is still running`)
  }
  await isolation.failpoint('leave.session')
  await noteInWorktree(context, codebase, environment, run.itemId)
  const detail = await removeEnvironment(context, subject)
  await isolation.failpoint('leave.environment')
  if (await isLatestLife(context, agent)) forgetFiles(context, agent.name)
  return {
    state: 'done',
    ...(detail !== undefined && { detail }),
    record: async (store) => {
      // `fleet down` may have recorded meanwhile that its session is gone.
      const now = await store.fleetAgents.get(agent.id)
      if (now === undefined || now.state === 'gone' || now.spawn !== agent.spawn) return
      await store.fleetAgents.move(now.id, now.state, 'gone', { endedAt: isolation.clock(), session: undefined })
    },
  }
}

/** Why it stays, if it should have gone. */
const removeEnvironment = async (
  { isolation, environments }: FleetContext,
  { run, environment }: StepSubject,
): Promise<string | undefined> => {
  if (environment === undefined || waits(run)) return undefined
  const isDiscarded = run.steps.some(({ step }) => step === 'validate-discard')
  try {
    const outcome = await (await environments()).destroy(environment, { trigger: 'fleet', force: isDiscarded })
    if (outcome.outcome !== 'refused') return undefined
    isolation.log.info("an agent's worktree stays", { branch: environment.branch })
    return `the worktree stays: ${outcome.reasons.map(({ fact }) => fact?.kind ?? 'unknown').join(', ')}`
  } catch (error) {
    // The work is done, and cleanup tries again.
    const { message } = toAppError(error)
    isolation.log.warn("an agent's worktree could not be removed", { branch: environment.branch, error: message })
    return `the worktree stays: ${message}`
  }
}

const waits = ({ steps }: FormulaRun): boolean => steps.some(({ step }) => step === 'open-pr' || step === 'enqueue')

import { AppError, toAppError } from '../../../domain/errors.ts'
import { type FormulaRun, hasStep } from '../../../domain/fleet/formula.ts'
import { identityWord } from '../../../domain/process-identity.ts'
import { isInside } from '../../caller.ts'
import { deleteAgentFiles, endSession, isLatestLife } from '../../end-session.ts'
import type { FleetContext } from '../../context.ts'
import { noteInWorktree } from '../../items/note-in-worktree.ts'
import type { Step, StepSubject } from '../step.ts'

/**
 * Ends the agent's session, confirms that it is dead, and removes the environment through the gates unless it waits for
 * a merge. A crew member goes back to work without an item.
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
    // The process that ends a session must not be part of it.
    await context.inBackground(['leave', run.id, identityWord(isolation.self)])
    return { state: 'handed-over' }
  }
  if (!(await endSession(context, agent))) {
    throw new AppError('busy', `couldn't end the session of ${agent.name}: some of its processes are still running`)
  }
  await isolation.failpoint('leave.session')
  await noteInWorktree(context, codebase, environment, run.itemId)
  const detail = await removeEnvironment(context, subject)
  await isolation.failpoint('leave.environment')
  if (await isLatestLife(context, agent)) deleteAgentFiles(context, agent.name)
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

/** Returns why the environment wasn't removed, if it should have been. */
const removeEnvironment = async (
  { isolation, environments }: FleetContext,
  { run, environment }: StepSubject,
): Promise<string | undefined> => {
  if (environment === undefined || waits(run)) return undefined
  const isDiscarded = hasStep(run, 'validate-discard')
  try {
    const outcome = await (await environments()).destroy(environment, { trigger: 'fleet', force: isDiscarded })
    if (outcome.outcome !== 'refused') return undefined
    isolation.log.info("an agent's worktree was kept", { branch: environment.branch })
    return `kept the worktree: ${outcome.reasons.map(({ fact }) => fact?.kind ?? 'unknown').join(', ')}`
  } catch (error) {
    // Not an error: the work is done, and cleanup retries the removal.
    const { message } = toAppError(error)
    isolation.log.warn("an agent's worktree could not be removed", { branch: environment.branch, error: message })
    return `kept the worktree: ${message}`
  }
}

const waits = (run: FormulaRun): boolean => hasStep(run, 'open-pr') || hasStep(run, 'enqueue')

import type { FleetAgent } from '../../domain/fleet/agent.ts'
import { AppError, toAppError } from '../../domain/errors.ts'
import { coppice, remedy } from '../../domain/remedy.ts'
import { toWork } from '../../domain/work.ts'
import { itemHolder } from '../../isolation/holders.ts'
import type { FleetContext } from '../context.ts'
import { endSession, deleteAgentFiles } from '../end-session.ts'
import { unhookItem } from '../items/change.ts'

/**
 * Undoes exactly what a sling created, in reverse order: the session, the environment, the hook, the name. The gates
 * keep an environment that has been worked in. Idempotent.
 */
export const undoSling = async (context: FleetContext, agentId: string): Promise<void> => {
  const { isolation } = context
  const { store, clock, failpoint, log, self } = isolation
  const agent = await store.fleetAgents.get(agentId)
  if (agent === undefined || agent.state !== 'spawning') return
  if (!(await endSession(context, agent, { graceMs: 0 }))) {
    throw new AppError('busy', `couldn't end the session of ${agent.name}`, {
      remedy: remedy`try again: ${coppice('fleet up')}`,
    })
  }
  await failpoint('undo-sling.session')
  const isKept = await removeOwnEnvironment(context, agent)
  await failpoint('undo-sling.environment')
  const item = agent.itemId === undefined ? undefined : await store.items.get(agent.itemId)
  const isOurs = await store.transaction(async (inside) => {
    const end = { endedAt: clock(), session: undefined, holder: self }
    if (!(await inside.fleetAgents.move(agent.id, 'spawning', 'gone', end))) return false
    if (item?.state !== 'hooked') return true
    const why = 'not-started'
    const withoutEnvironment = !isKept
    await unhookItem(context, inside, item, { to: 'open', agent: agent.name, why, by: 'fleet', withoutEnvironment })
    return true
  })
  await failpoint('undo-sling.unhooked')
  if (isOurs) deleteAgentFiles(context, agent.name)
  if (isKept) log.warn('an agent could not be started, and its worktree was kept', { agent: agent.name })
}

/** Returns whether an environment is still there. One that the item had before the sling is never removed. */
const removeOwnEnvironment = async (context: FleetContext, agent: FleetAgent): Promise<boolean> => {
  const { isolation, environments } = context
  const { store, log } = isolation
  const work = toWork('agent', agent.name)
  // By its work, since the agent's row may not refer to it yet.
  const found = await store.environments.liveByWork(agent.codebaseId, work)
  if (found === undefined) return false
  if (found.createdAt < agent.createdAt || found.status !== 'active') return true
  // The clock may have been set back since: it is the worktree of the last agent of this name.
  if ((await store.fleetAgents.lastGone(agent.host, agent.name))?.environmentId === found.id) return true
  const askedBy = agent.itemId === undefined ? agent.id : itemHolder(agent.itemId)
  try {
    const outcome = await (await environments()).destroy(found, { trigger: 'fleet', askedBy })
    return outcome.outcome !== 'removed'
  } catch (error) {
    log.warn("an agent's new worktree could not be removed", { agent: agent.name, error: toAppError(error).message })
    return true
  }
}

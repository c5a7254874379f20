import type { FleetAgent } from '../../domain/fleet/agent.ts'
import { AppError, toAppError } from '../../domain/errors.ts'
import { toWork } from '../../domain/work.ts'
import { itemHolder } from '../../isolation/holders.ts'
import type { FleetContext } from '../context.ts'
import { endSession, forgetFiles } from '../end-session.ts'
import { unhookItem } from '../items/change.ts'

/**
 * Takes back exactly what a sling has made, in reverse order: the session, the environment, the hook, the name. An
 * environment that somebody has worked in meanwhile stays, as the gates say. Repeating it changes nothing.
 */
export const undoSling = async (context: FleetContext, agentId: string): Promise<void> => {
  const { isolation } = context
  const { store, clock, failpoint, log, self } = isolation
  const agent = await store.fleetAgents.get(agentId)
  if (agent === undefined || agent.state !== 'spawning') return
  if (!(await endSession(context, agent, { graceMs: 0 }))) {
    throw new AppError('busy', `couldn't end the session of ${agent.name}`, {
      remedy: 'it is tried again with the next command of the fleet',
    })
  }
  await failpoint('undo-sling.session')
  const stays = await removeOwn(context, agent)
  await failpoint('undo-sling.environment')
  const item = agent.itemId === undefined ? undefined : await store.items.get(agent.itemId)
  const isOurs = await store.transaction(async (inside) => {
    const end = { endedAt: clock(), session: undefined, holder: self }
    if (!(await inside.fleetAgents.move(agent.id, 'spawning', 'gone', end))) return false
    if (item?.state !== 'hooked') return true
    const why = 'not-started'
    const withoutEnvironment = !stays
    await unhookItem(context, inside, item, { to: 'open', agent: agent.name, why, by: 'fleet', withoutEnvironment })
    return true
  })
  await failpoint('undo-sling.unhooked')
  if (isOurs) forgetFiles(context, agent.name)
  if (stays) log.warn('an agent could not be started, and its worktree stays', { agent: agent.name })
}

/** False if there is no environment, or it is gone now. One that the item had before isn't ours to remove. */
const removeOwn = async (context: FleetContext, agent: FleetAgent): Promise<boolean> => {
  const { isolation, environments } = context
  const { store, log } = isolation
  const work = toWork('agent', agent.name)
  // The row may not know it yet.
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

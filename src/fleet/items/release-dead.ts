import { AppError } from '../../domain/errors.ts'
import { mayHaveSession } from '../../domain/fleet/agent.ts'
import { coppice, remedy } from '../../domain/remedy.ts'
import { isProvablyDead } from '../../isolation/agents-inside.ts'
import type { FleetContext } from '../context.ts'
import { hasNoCommits } from '../no-commits.ts'
import { removeAgent } from '../remove-agent.ts'

/**
 * Removes the item's worker with its worktree, if it is dead and has changed nothing, so that another one can start anew.
 * Undefined if that isn't so: then the item keeps both.
 */
export const releaseDead = async (context: FleetContext, itemId: number): Promise<'released' | undefined> => {
  const { isolation } = context
  const { store, host } = isolation
  const [agent] = await store.fleetAgents.ofItems([itemId])
  if (agent?.kind !== 'worker' || agent.host !== host || mayHaveSession(agent.state)) return undefined
  if ((await store.formulaRuns.runningOf(agent.id)) !== undefined) return undefined
  if (!(await isProvablyDead(isolation, agent)) || !(await hasNoCommits(context, agent))) return undefined
  const { kept } = await removeAgent(context, agent, { giveUpItem: true })
  if (kept.length === 0) return 'released'
  throw new AppError('refused', `${agent.name}'s worktree has changes, so item ${itemId} stays with it`, {
    remedy: remedy`let ${agent.name} continue: ${coppice(`sling ${itemId}`)}`,
  })
}

import { mayHaveSession } from '../../../domain/fleet/agent.ts'
import { isProvablyDead } from '../../../isolation/agents-inside.ts'
import { removeTrees, treesOf } from '../../crew.ts'
import { removeAgent } from '../../remove-agent.ts'
import { about, type AgentRow } from '../row.ts'

const name = 'orphaned-hook'

/** Agent and worktree are provably gone, so the item is open again. A crew member moves to another of its worktrees. */
export const orphanedHook: AgentRow = {
  name,
  applies: ({ agent, worktree, formula }) => !mayHaveSession(agent.state) && worktree === 'no' && formula !== 'held',
  act: async (context, { agent }) => {
    const { isolation } = context
    if (!(await isProvablyDead(isolation, agent))) return undefined
    if (agent.kind === 'worker') {
      await removeAgent(context, agent, { giveUpItem: true })
      return { ...about(agent, name), did: agent.itemId === undefined ? 'removed' : 'unhooked' }
    }
    const [tree] = await treesOf(context, agent.name)
    if (tree === undefined) await removeTrees(context, agent)
    else await isolation.store.fleetAgents.update(agent.id, { environmentId: tree.environment.id })
    return { ...about(agent, name), did: tree === undefined ? 'removed' : 'start-recovered' }
  },
}

import type { IsolatedEnvironment } from '../domain/environment.ts'
import type { FleetAgent } from '../domain/fleet/agent.ts'
import type { GateAnswer } from '../domain/removal/gates.ts'
import { itemHolder } from '../isolation/holders.ts'
import type { FleetContext } from './context.ts'
import { deleteAgentFiles } from './end-session.ts'
import { unhookItem } from './items/change.ts'

export type RemovedAgent = {
  readonly environment: IsolatedEnvironment | undefined
  /** Why the worktree stays; then the agent stays, too. */
  readonly kept: readonly GateAnswer[]
}

/**
 * Ends an agent that has no session any more, with its worktree if the gates let it. If they refuse, nothing changes:
 * agent, worktree and hook stay together. An item that isn't settled keeps the worktree, unless it is given up: then it
 * is open again.
 */
export const removeAgent = async (
  context: FleetContext,
  agent: FleetAgent,
  { giveUpItem = false }: { readonly giveUpItem?: boolean } = {},
): Promise<RemovedAgent> => {
  const { isolation, environments } = context
  const { store, clock, failpoint } = isolation
  const { environmentId, itemId, state } = agent
  const found = environmentId === undefined ? undefined : await store.environments.get(environmentId)
  const environment = found?.status === 'removed' || found?.status === 'released' ? undefined : found
  if (environment !== undefined) {
    const askedBy = giveUpItem && itemId !== undefined ? itemHolder(itemId) : agent.id
    const outcome = await (await environments()).destroy(environment, { trigger: 'fleet', askedBy })
    if (outcome.outcome === 'refused') return { environment, kept: outcome.reasons }
  }
  await failpoint('remove-agent.environment')
  const isOurs = await store.transaction(async (inside) => {
    const end = { endedAt: clock(), session: undefined }
    if (!(await inside.fleetAgents.move(agent.id, state, 'gone', end))) return false
    const item = itemId === undefined ? undefined : await inside.items.get(itemId)
    if (item?.state !== 'hooked') return true
    const undone = { to: 'open', agent: agent.name, why: 'stopped', by: 'fleet', withoutEnvironment: true } as const
    await unhookItem(context, inside, item, undone)
    return true
  })
  await failpoint('remove-agent.gone')
  // Whoever was faster has freed the name, and the files may be another agent's by now.
  if (isOurs) deleteAgentFiles(context, agent.name)
  return { environment, kept: [] }
}

import type { IsolatedEnvironment } from '../domain/environment.ts'
import type { FleetAgent } from '../domain/fleet/agent.ts'
import type { GateAnswer } from '../domain/removal/gates.ts'
import { itemHolder } from '../isolation/holders.ts'
import type { FleetContext } from './context.ts'
import { deleteAgentFiles } from './end-session.ts'
import { unhookItem } from './items/change.ts'

export type RemovedAgent = {
  readonly environment: IsolatedEnvironment | undefined
  /** Why the worktree is kept. If it is, so is the agent. */
  readonly kept: readonly GateAnswer[]
}

/**
 * Removes an agent whose session has ended, with its worktree. If the gates refuse, nothing changes: agent, worktree
 * and hook stay together. An unsettled item holds the worktree; with `giveUpItem` it is open again instead.
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
  // If another process was faster, the name is free and the files may belong to a new agent.
  if (isOurs) deleteAgentFiles(context, agent.name)
  return { environment, kept: [] }
}

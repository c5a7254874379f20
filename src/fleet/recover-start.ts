import type { FleetAgent } from '../domain/fleet/agent.ts'
import { isProvablyDead } from '../isolation/agents-inside.ts'
import { liveness } from '../process/identity.ts'
import type { FleetContext } from './context.ts'
import { undoMember } from './crew.ts'
import { cancelStart } from './restart-agent.ts'
import { sendItem } from './sling/assign.ts'
import { undoSling } from './sling/undo-sling.ts'

/** Completes or undoes the agent's start if its process has died. False if there is nothing to recover. */
export const recoverStart = async (context: FleetContext, agent: FleetAgent): Promise<boolean> => {
  const { store, self } = context.isolation
  if (agent.state !== 'spawning' || liveness(agent.holder) !== 'dead') return false
  // If two processes recover at once, only one continues.
  if (!(await store.fleetAgents.claim(agent.id, agent.holder, self))) return false
  await settleStart(context, agent)
  return true
}

const settleStart = async (context: FleetContext, agent: FleetAgent): Promise<void> => {
  if (agent.workedAt === undefined) {
    return agent.kind === 'crew' ? undoMember(context, agent.id) : undoSling(context, agent.id)
  }
  const runs = agent.session !== undefined && !(await isProvablyDead(context.isolation, agent))
  // It was running when it got its item, which may now be sent twice.
  if (runs && agent.itemId !== undefined) return void (await sendItem(context, agent))
  await cancelStart(context, agent.id, 'stopped')
}

import { canAgentBecome, type FleetAgent, isBeingStopped, mayHaveSession } from '../../domain/fleet/agent.ts'
import { isFromEarlierBoot } from '../../process/identity.ts'
import type { FleetContext } from '../context.ts'
import { endSession } from '../end-session.ts'
import { DEATH, type Death } from './death.ts'
import { WHOLE_LIFE } from './look.ts'
import { about, type Finding } from './row.ts'
import type { Seen } from './seen.ts'

/** How long what a dead agent has left running may take to end by itself. */
const LEFT_MS = 10_000

/** Without an item, a crew member that has run for this long gets all its restarts again. */
const SETTLED_MS = 60 * 60_000

/**
 * Ends what a dead session has left running, and records that the agent has crashed. If its pool is shrinking, it counts
 * as stopped, and isn't started again.
 */
export const recordCrash = async (
  context: FleetContext,
  seen: Seen,
  row: string,
  { isOrphan = false }: { readonly isOrphan?: boolean } = {},
): Promise<Finding | undefined> => {
  const { store, host, clock, failpoint } = context.isolation
  const { agent } = seen
  if (!(await endSession(context, agent, { graceMs: LEFT_MS, isOrphan }))) return undefined
  await failpoint('crash.ended')
  const to = agent.drainingSince === undefined ? 'crashed' : 'stopped'
  const now = clock()
  const isOurs = await store.transaction(async (inside) => {
    const current = await inside.fleetAgents.get(agent.id)
    if (current === undefined || current.spawn !== agent.spawn || !mayCrash(current)) return false
    const patch = { session: undefined, drainingSince: undefined, restarts: restartsOf(agent, now) }
    if (!(await inside.fleetAgents.move(agent.id, current.state, to, patch))) return false
    const death: Death = { name: agent.name, cause: causeOf(seen) }
    await inside.patrolNotes.see(host, { subject: agent.id, what: DEATH, life: WHOLE_LIFE, at: now, data: death })
    const { name, itemId, restarts } = agent
    await context.notify(inside, { kind: 'crashed', agent: name, itemId, restarts })
    return true
  })
  await failpoint('crash.recorded')
  return isOurs ? { ...about(agent, row), did: to } : undefined
}

const mayCrash = (agent: FleetAgent): boolean =>
  mayHaveSession(agent.state) && !isBeingStopped(agent) && canAgentBecome(agent.state, 'crashed')

const restartsOf = ({ itemId, session, restarts }: FleetAgent, now: number): number =>
  itemId === undefined && session !== undefined && now - session.startedAt > SETTLED_MS ? 0 : restarts

/** A pane stays when its program ends. If it is gone, somebody or something has taken all sessions away. */
const causeOf = ({ agent: { session }, isUnlisted }: Seen): Death['cause'] => {
  if (session !== undefined && isFromEarlierBoot(session.root)) return 'restart'
  return session?.kind === 'tmux' && isUnlisted ? 'tmux-ended' : 'own'
}

import { toAppError } from '../domain/errors.ts'
import { type FleetAgent, mayHaveSession } from '../domain/fleet/agent.ts'
import type { FleetContext } from './context.ts'
import { endSession, GRACE_MS } from './end-session.ts'
import { takeOverFormula } from './formulas/run-formula.ts'

export type Stopped =
  /** Its hook and worktree are kept. */
  | { readonly outcome: 'stopped'; readonly agent: FleetAgent }
  /** It was finishing its item, which is now done. */
  | { readonly outcome: 'gone'; readonly agent: FleetAgent }
  /** Some of its processes are still running. */
  | { readonly outcome: 'running'; readonly agent: FleetAgent }

/** Ends an agent's session and every process in it, and completes a formula that it has begun. Safe to repeat. */
export const stopAgent = async (
  context: FleetContext,
  agent: FleetAgent,
  { graceMs = GRACE_MS }: { readonly graceMs?: number } = {},
): Promise<Stopped> => {
  const { store, failpoint } = context.isolation
  if (!(await endRecorded(context, agent, graceMs))) return { outcome: 'running', agent }
  await failpoint('stop.session')
  await completeFormula(context, agent)
  for (;;) {
    const now = await store.fleetAgents.get(agent.id)
    if (now === undefined || now.state === 'gone') return { outcome: 'gone', agent: now ?? agent }
    // Another process has restarted it.
    if (now.spawn !== agent.spawn) return { outcome: 'running', agent: now }
    if (!mayHaveSession(now.state)) return { outcome: 'stopped', agent: now }
    const patch = { session: undefined, drainingSince: undefined }
    if (await store.fleetAgents.move(now.id, now.state, 'stopped', patch)) {
      await failpoint('stop.recorded')
      return { outcome: 'stopped', agent: { ...now, ...patch, state: 'stopped' } }
    }
  }
}

/** Records that the agent is being stopped, so that after a crash its dead session doesn't look like the agent's death. */
const endRecorded = async (context: FleetContext, agent: FleetAgent, graceMs: number): Promise<boolean> => {
  const { store, self } = context.isolation
  const { fleetAgents } = store
  const { id, state, spawn, drainingSince } = agent
  const intent = { holder: self, drainingSince: undefined }
  const isRecorded = await store.transaction(async (inside) => {
    // If it was restarted, this isn't the session that is to end.
    if ((await inside.fleetAgents.get(id))?.spawn !== spawn) return false
    if (state === 'draining') return inside.fleetAgents.update(id, intent).then(() => true)
    return (state === 'working' || state === 'stuck') && inside.fleetAgents.move(id, state, 'draining', intent)
  })
  let isEnded = false
  try {
    isEnded = await endSession(context, agent, { graceMs })
    return isEnded
  } finally {
    // It is still running, or that couldn't be determined.
    if (isRecorded && !isEnded) {
      if (state === 'draining') await fleetAgents.update(id, { drainingSince })
      else await fleetAgents.move(id, 'draining', 'working')
    }
  }
}

/** Completes the formula of an agent that was finishing, which no longer needs the session. */
const completeFormula = async (context: FleetContext, agent: FleetAgent): Promise<void> => {
  const { store, log } = context.isolation
  const begun = await store.formulaRuns.runningOf(agent.id)
  if (begun === undefined) return
  try {
    await takeOverFormula(context, begun)
  } catch (error) {
    // It stays recorded; the server's next round or `fleet up` tries again.
    log.warn('the formula of a stopped agent could not be completed', {
      agent: agent.name,
      error: toAppError(error).message,
    })
  }
}

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
  if (!(await endSession(context, agent, { graceMs }))) return { outcome: 'running', agent }
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

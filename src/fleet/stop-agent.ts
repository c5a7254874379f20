import { toAppError } from '../domain/errors.ts'
import { type FleetAgent, mayHaveSession } from '../domain/fleet/agent.ts'
import type { FleetContext } from './context.ts'
import { endSession, GRACE_MS } from './end-session.ts'
import { takeOverFormula } from './formulas/run-formula.ts'

export type Stopped =
  /** Its hook and its worktree stay. */
  | { readonly outcome: 'stopped'; readonly agent: FleetAgent }
  /** It had begun to finish its item, and that is done now. */
  | { readonly outcome: 'gone'; readonly agent: FleetAgent }
  /** Something of it is still running. */
  | { readonly outcome: 'running'; readonly agent: FleetAgent }

/**
 * Ends an agent's session, and whatever that started. What it had begun to finish is finished. Safe to repeat.
 */
export const stopAgent = async (
  context: FleetContext,
  agent: FleetAgent,
  { graceMs = GRACE_MS }: { readonly graceMs?: number } = {},
): Promise<Stopped> => {
  const { store, failpoint } = context.isolation
  if (!(await endSession(context, agent, { graceMs }))) return { outcome: 'running', agent }
  await failpoint('stop.session')
  await finishBegun(context, agent)
  for (;;) {
    const now = await store.fleetAgents.get(agent.id)
    if (now === undefined || now.state === 'gone') return { outcome: 'gone', agent: now ?? agent }
    // Started again meanwhile: that is another life, and not ours to judge.
    if (now.spawn !== agent.spawn) return { outcome: 'running', agent: now }
    if (!mayHaveSession(now.state)) return { outcome: 'stopped', agent: now }
    const patch = { session: undefined, drainingSince: undefined }
    if (await store.fleetAgents.move(now.id, now.state, 'stopped', patch)) {
      await failpoint('stop.recorded')
      return { outcome: 'stopped', agent: { ...now, ...patch, state: 'stopped' } }
    }
  }
}

/** Its session ended while it was finishing: the rest needs no session. */
const finishBegun = async (context: FleetContext, agent: FleetAgent): Promise<void> => {
  const { store, log } = context.isolation
  const begun = await store.formulaRuns.runningOf(agent.id)
  if (begun === undefined) return
  try {
    await takeOverFormula(context, begun)
  } catch (error) {
    // It stays recorded, and the next command of the fleet tries again.
    log.warn("what an agent had begun couldn't be finished", { agent: agent.name, error: toAppError(error).message })
  }
}

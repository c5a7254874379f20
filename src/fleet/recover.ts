import type { FleetAgent } from '../domain/fleet/agent.ts'
import { toAppError } from '../domain/errors.ts'
import { listDirectory } from '../process/files/list-directory.ts'
import { unlessMissing } from '../domain/missing.ts'
import { liveness } from '../process/identity.ts'
import { lstatIfThere } from '../process/files/lstat-if-there.ts'
import type { FleetContext } from './context.ts'
import { forgetFiles, isProvablyDead } from './end-session.ts'
import { undoMember } from './crew.ts'
import { finishFormulas } from './formulas/done.ts'
import { agentDirectory, agentsHome } from './sessions/places.ts'
import { tellAssigned } from './sling/assign.ts'
import { undoSling } from './sling/undo-sling.ts'
import { sleepAgain } from './wake.ts'

/** An agent's files without a row: whoever made them is starting one, or has died. */
const HALF_MADE_MS = 5 * 60_000

export type RecoveredFleet = {
  /** Agents whose start was undone, or repeated. */
  readonly settled: readonly string[]
  /** Those that can't be judged yet, with the reason. */
  readonly left: readonly { readonly agent: string; readonly why: string }[]
}

/**
 * Finishes or undoes what dead processes of ours have begun: starts, assignments, formulas. Leaves alone whatever a
 * living one is doing. Doing it twice is the same as once.
 */
export const recoverFleet = async (context: FleetContext): Promise<RecoveredFleet> => {
  const { store, host, self } = context.isolation
  const settled: string[] = []
  const left: { agent: string; why: string }[] = []
  for (const agent of await store.fleetAgents.live({ host })) {
    if (agent.state !== 'spawning' || liveness(agent.holder) !== 'dead') continue
    // Of two that recover at once, one does.
    if (!(await store.fleetAgents.claim(agent.id, agent.holder, self))) continue
    try {
      await settle(context, agent)
      settled.push(agent.name)
    } catch (error) {
      left.push({ agent: agent.name, why: toAppError(error).message })
    }
  }
  await finishFormulas(context)
  await forgetHalfMade(context)
  return { settled, left }
}

const settle = async (context: FleetContext, agent: FleetAgent): Promise<void> => {
  if (agent.workedAt === undefined) {
    return agent.kind === 'crew' ? undoMember(context, agent.id) : undoSling(context, agent.id)
  }
  const runs = agent.session !== undefined && !(await isProvablyDead(context, agent))
  // It ran already when it was given its item. It may be told twice.
  if (runs && agent.itemId !== undefined) return void (await tellAssigned(context, agent))
  await sleepAgain(context, agent.id, 'stopped')
}

/** Directories of agents that no row knows keep their names in use. */
const forgetHalfMade = async (context: FleetContext): Promise<void> => {
  const { isolation, sessions } = context
  const { home, store, host, clock } = isolation
  const names = (await unlessMissing(listDirectory(Buffer.from(agentsHome(home))))) ?? []
  if (names.length === 0) return
  const known = new Set((await store.fleetAgents.live({ host })).map(({ name }) => name))
  const unknown = names.map(({ name }) => name).filter((name) => !known.has(name))
  if (unknown.length === 0) return
  const listed = await Promise.all(sessions.all().map((kind) => kind.list()))
  const running = new Set(listed.flat().flatMap(({ name, dead }) => (dead ? [] : [name])))
  for (const name of unknown) {
    const changedAt = lstatIfThere(agentDirectory(home, name))?.ctimeMs
    if (running.has(name) || changedAt === undefined || clock() - changedAt < HALF_MADE_MS) continue
    forgetFiles(context, name)
  }
}

import { type FleetAgent, mayHaveSession } from '../domain/fleet/agent.ts'
import { isProvablyDead } from '../isolation/agents-inside.ts'
import { toAppError } from '../domain/errors.ts'
import { listDirectory } from '../process/files/list-directory.ts'
import { unlessMissing } from '../domain/missing.ts'
import { liveness } from '../process/identity.ts'
import { lstatIfThere } from '../process/files/lstat-if-there.ts'
import type { FleetContext } from './context.ts'
import { forgetFiles } from './end-session.ts'
import { removeTrees, treesOf, undoMember } from './crew.ts'
import { finishFormulas } from './formulas/done.ts'
import { removeAgent } from './remove-agent.ts'
import { agentDirectory, agentsHome } from './sessions/places.ts'
import { endIdle, isBeingLetGo, tellAssigned } from './sling/assign.ts'
import { undoSling } from './sling/undo-sling.ts'
import { stopAgent } from './stop-agent.ts'
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
export const recoverFleet = async (
  context: FleetContext,
  { withFormulas = true }: { readonly withFormulas?: boolean } = {},
): Promise<RecoveredFleet> => {
  const { store, host } = context.isolation
  const settled: string[] = []
  const left: { agent: string; why: string }[] = []
  const { state: fleet } = await store.fleetControl.get(host)
  // Before anything is judged by what a formula would still change.
  if (withFormulas) await finishFormulas(context)
  for (const agent of await store.fleetAgents.live({ host })) {
    try {
      if (await settle(context, agent, { isDown: fleet === 'down' })) settled.push(agent.name)
    } catch (error) {
      left.push({ agent: agent.name, why: toAppError(error).message })
    }
  }
  await forgetHalfMade(context)
  return { settled, left }
}

/** True if something was half done, and no longer is. */
const settle = async (
  context: FleetContext,
  agent: FleetAgent,
  { isDown }: { readonly isDown: boolean },
): Promise<boolean> => {
  const { store, self } = context.isolation
  if (agent.state === 'spawning') {
    if (liveness(agent.holder) !== 'dead') return false
    // Of two that recover at once, one does.
    if (!(await store.fleetAgents.claim(agent.id, agent.holder, self))) return false
    await settleStart(context, agent)
    return true
  }
  if (isBeingLetGo(agent) && liveness(agent.holder) === 'dead') {
    // One that still runs waits for an item again: whoever needs its place lets it go.
    if (!(await isProvablyDead(context.isolation, agent)))
      return store.fleetAgents.move(agent.id, 'draining', 'working')
    await endIdle(context, agent)
    return true
  }
  if (!mayHaveSession(agent.state))
    return (await isWithoutWorktree(context, agent)) ? forgetAgent(context, agent) : false
  // `fleet down` was interrupted after it had ended this session.
  if (!isDown || !(await isProvablyDead(context.isolation, agent))) return false
  return (await stopAgent(context, agent, { graceMs: 0 })).outcome !== 'running'
}

const settleStart = async (context: FleetContext, agent: FleetAgent): Promise<void> => {
  if (agent.workedAt === undefined) {
    return agent.kind === 'crew' ? undoMember(context, agent.id) : undoSling(context, agent.id)
  }
  const runs = agent.session !== undefined && !(await isProvablyDead(context.isolation, agent))
  // It ran already when it was given its item. It may be told twice.
  if (runs && agent.itemId !== undefined) return void (await tellAssigned(context, agent))
  await sleepAgain(context, agent.id, 'stopped')
}

/** Removed, not missing: one on a disk that isn't mounted may come back. */
const isWithoutWorktree = async (
  { isolation: { store } }: Pick<FleetContext, 'isolation'>,
  { environmentId }: FleetAgent,
): Promise<boolean> => {
  const found = environmentId === undefined ? undefined : await store.environments.get(environmentId)
  return found === undefined || found.status === 'removed' || found.status === 'released'
}

/** Agent and worktree are provably gone: an item that it had is open again. */
const forgetAgent = async (context: FleetContext, agent: FleetAgent): Promise<boolean> => {
  if (agent.kind === 'worker') {
    await removeAgent(context, agent, { giveUpItem: true })
    return true
  }
  const [tree] = await treesOf(context, agent.name)
  if (tree === undefined) await removeTrees(context, agent)
  else await context.isolation.store.fleetAgents.update(agent.id, { environmentId: tree.environment.id })
  return true
}

/** Directories of agents that no row knows keep their names in use. */
const forgetHalfMade = async (context: FleetContext): Promise<void> => {
  const { isolation, sessions } = context
  const { home, store, host } = isolation
  const names = (await unlessMissing(listDirectory(Buffer.from(agentsHome(home))))) ?? []
  if (names.length === 0) return
  const known = new Set((await store.fleetAgents.live({ host })).map(({ name }) => name))
  const unknown = names.map(({ name }) => name).filter((name) => !known.has(name))
  if (unknown.length === 0) return
  const listed = await Promise.all(sessions.all().map((kind) => kind.list()))
  const running = new Set(listed.flat().flatMap(({ name, dead }) => (dead ? [] : [name])))
  for (const name of unknown) {
    if (!running.has(name) && (await isLeftover(context, name))) forgetFiles(context, name)
  }
}

/** Untouched since the last agent of this name has gone, or for long: nobody is just starting one. */
const isLeftover = async (
  { isolation: { home, store, host, clock } }: FleetContext,
  name: string,
): Promise<boolean> => {
  const changedAt = lstatIfThere(agentDirectory(home, name))?.ctimeMs
  if (changedAt === undefined) return false
  const endedAt = (await store.fleetAgents.lastGone(host, name))?.endedAt
  return clock() - changedAt > HALF_MADE_MS || (endedAt !== undefined && changedAt < endedAt)
}

import { type FleetAgent, isBeingStopped, mayHaveSession } from '../domain/fleet/agent.ts'
import { isProvablyDead } from '../isolation/agents-inside.ts'
import { toAppError } from '../domain/errors.ts'
import { listDirectory } from '../process/files/list-directory.ts'
import { unlessMissing } from '../domain/missing.ts'
import { liveness } from '../process/identity.ts'
import { lstatIfThere } from '../process/files/lstat-if-there.ts'
import type { FleetContext } from './context.ts'
import { deleteAgentFiles } from './end-session.ts'
import { removeTrees, treesOf, undoMember } from './crew.ts'
import { finishFormulas } from './formulas/abandoned.ts'
import { removeAgent } from './remove-agent.ts'
import { agentDirectory, agentsHome } from './sessions/paths.ts'
import { sendItem } from './sling/assign.ts'
import { finishRetiring, isRetiring } from './sling/idle-workers.ts'
import { undoSling } from './sling/undo-sling.ts'
import { stopAgent } from './stop-agent.ts'
import { cancelStart } from './restart-agent.ts'

/** Files without a row are this long assumed to belong to an agent that is being started. */
const HALF_MADE_MS = 5 * 60_000

export type RecoveredFleet = {
  /** Agents whose interrupted start or stop was completed or undone. */
  readonly settled: readonly string[]
  /** Agents that couldn't be recovered now, and why. */
  readonly left: readonly { readonly agent: string; readonly why: string }[]
}

/**
 * Completes or undoes starts, assignments and formulas whose process has died. Skips those of a living process.
 * Idempotent.
 */
export const recoverFleet = async (
  context: FleetContext,
  { withFormulas = true }: { readonly withFormulas?: boolean } = {},
): Promise<RecoveredFleet> => {
  const { store, host } = context.isolation
  const settled: string[] = []
  const left: { agent: string; why: string }[] = []
  const { state: fleet } = await store.fleetControl.get(host)
  // First, because a formula may still change the agents that are checked below.
  if (withFormulas) await finishFormulas(context)
  for (const agent of await store.fleetAgents.live({ host })) {
    try {
      if (await settle(context, agent, { isDown: fleet === 'down' })) settled.push(agent.name)
    } catch (error) {
      left.push({ agent: agent.name, why: toAppError(error).message })
    }
  }
  await deleteLeftovers(context)
  return { settled, left }
}

/** True if an interrupted operation of the agent was completed or undone. */
const settle = async (
  context: FleetContext,
  agent: FleetAgent,
  { isDown }: { readonly isDown: boolean },
): Promise<boolean> => {
  const { store } = context.isolation
  if (agent.state === 'spawning') return recoverStart(context, agent)
  if (isBeingStopped(agent) && liveness(agent.holder) === 'dead') {
    // One that is still running continues. Whoever stopped it has to ask again.
    if (!(await isProvablyDead(context.isolation, agent)))
      return store.fleetAgents.move(agent.id, 'draining', 'working')
    if (isRetiring(agent) && !isDown) await finishRetiring(context, agent)
    else await stopAgent(context, agent, { graceMs: 0 })
    return true
  }
  if (!mayHaveSession(agent.state))
    return (await hasLostWorktree(context, agent)) ? removeOrphaned(context, agent) : false
  // `fleet down` was interrupted right after it ended this session.
  if (!isDown || !(await isProvablyDead(context.isolation, agent))) return false
  return (await stopAgent(context, agent, { graceMs: 0 })).outcome !== 'running'
}

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

/** True only if it was removed. A missing one may be on a disk that isn't mounted. */
const hasLostWorktree = async (
  { isolation: { store } }: Pick<FleetContext, 'isolation'>,
  { environmentId }: FleetAgent,
): Promise<boolean> => {
  const found = environmentId === undefined ? undefined : await store.environments.get(environmentId)
  return found === undefined || found.status === 'removed' || found.status === 'released'
}

/** Session and worktree are provably gone, so the agent's item is open again. */
const removeOrphaned = async (context: FleetContext, agent: FleetAgent): Promise<boolean> => {
  if (agent.kind === 'worker') {
    await removeAgent(context, agent, { giveUpItem: true })
    return true
  }
  const [tree] = await treesOf(context, agent.name)
  if (tree === undefined) await removeTrees(context, agent)
  else await context.isolation.store.fleetAgents.update(agent.id, { environmentId: tree.environment.id })
  return true
}

/** Deletes agents' directories that no row refers to, since they keep their names in use. */
const deleteLeftovers = async (context: FleetContext): Promise<void> => {
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
    if (!running.has(name) && (await isLeftover(context, name))) deleteAgentFiles(context, name)
  }
}

/** Not just being created: unchanged since the last agent of this name went, or for some minutes. */
const isLeftover = async (
  { isolation: { home, store, host, clock } }: FleetContext,
  name: string,
): Promise<boolean> => {
  const changedAt = lstatIfThere(agentDirectory(home, name))?.ctimeMs
  if (changedAt === undefined) return false
  const endedAt = (await store.fleetAgents.lastGone(host, name))?.endedAt
  return clock() - changedAt > HALF_MADE_MS || (endedAt !== undefined && changedAt < endedAt)
}

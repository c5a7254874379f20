import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { isProvablyDead } from '../../src/isolation/agents-inside.ts'
import { mayHaveSession } from '../../src/domain/fleet/agent.ts'
import { agentDirectory } from '../../src/fleet/sessions/paths.ts'
import { liveness } from '../../src/process/identity.ts'
import { listDirectory } from '../../src/process/files/list-directory.ts'
import type { FleetWorld } from '../helpers/fleet.ts'
import { processesAt } from '../helpers/invariants.ts'

/**
 * G14 and what belongs to it, as sentences: both sides of every hook agree, nothing is half done, a session runs
 * exactly for those agents that should have one, and nothing of one that is gone is left.
 */
export const checkFleet = async (world: Pick<FleetWorld, 'fleet' | 'box'>): Promise<string[]> => {
  const { fleet } = world
  const { store, host, home } = fleet.isolation
  const problems: string[] = []
  const agents = await store.fleetAgents.live({ host })
  const items = await store.items.list({})
  const sessions = (await Promise.all(fleet.sessions.all().map((kind) => kind.list()))).flat()
  for (const agent of agents) {
    const { name, state, itemId, session, environmentId } = agent
    if (state === 'spawning' || state === 'finishing') problems.push(`${name} is still ${state}`)
    const item = items.find(({ id }) => id === itemId)
    if (itemId !== undefined && item?.state !== 'hooked' && item?.state !== 'parked') {
      problems.push(`${name} has item ${itemId}, which is ${item?.state}`)
    }
    const environment = environmentId === undefined ? undefined : await store.environments.get(environmentId)
    if (environment?.status !== 'active') problems.push(`${name} has no worktree`)
    const runs = sessions.some((seen) => seen.name === name && !seen.dead)
    if (mayHaveSession(state) && state !== 'spawning') {
      if (session === undefined || liveness(session.root) !== 'alive')
        problems.push(`${name} is ${state}, but doesn't run`)
      const leases = environmentId === undefined ? [] : await store.leases.ofEnvironments([environmentId])
      if (!leases.some(({ holder }) => holder.pid === session?.root.pid)) problems.push(`${name} has no lease`)
    } else if (runs || !(await isProvablyDead(fleet.isolation, agent))) problems.push(`${name} is ${state}, but runs`)
  }
  for (const item of items) {
    const hooked = agents.filter(({ itemId }) => itemId === item.id).length
    if (item.state === 'hooked' ? hooked !== 1 : item.state !== 'parked' && hooked !== 0) {
      problems.push(`item ${item.id} is ${item.state}, and ${hooked} agents have it`)
    }
    const environment = item.environmentId && (await store.environments.get(item.environmentId))
    if (environment && environment.status !== 'active') problems.push(`item ${item.id} has a worktree that is gone`)
  }
  const known = new Set(agents.map(({ name }) => name))
  for (const { name } of sessions) if (!known.has(name)) problems.push(`a session of ${name}, who is gone`)
  for (const { name } of await listDirectory(Buffer.from(agentDirectory(home, ''))).catch(() => [])) {
    if (!known.has(name) && existsSync(agentDirectory(home, name))) problems.push(`files of ${name}, who is gone`)
  }
  for (const run of await store.formulaRuns.running()) problems.push(`the formula ${run.formula} is still running`)
  if (!agents.some(({ state }) => mayHaveSession(state))) {
    for (const [pid, command] of await processesLeft(world)) problems.push(`process ${pid}: ${command}`)
  }
  return problems.map((problem) => `G14: ${problem}`)
}

/** What writes a session's log ends by itself once the session has. */
const processesLeft = async (world: Pick<FleetWorld, 'box'>): Promise<ReturnType<typeof processesAt>> => {
  const deadline = performance.now() + 10_000
  for (;;) {
    const left = processesAt(world.box.root).filter(([, command]) => !command.startsWith('tmux '))
    if (left.length === 0 || performance.now() > deadline) return left
    await delay(20)
  }
}

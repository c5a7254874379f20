import { expect } from 'vitest'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import type { FleetAgent } from '../../src/domain/fleet/agent.ts'
import type { ProcessIdentity } from '../../src/domain/process-identity.ts'
import { patrol } from '../../src/fleet/patrol/patrol.ts'
import type { Finding } from '../../src/fleet/patrol/row.ts'
import { agentDirectory } from '../../src/fleet/sessions/paths.ts'
import { programIn } from '../../src/fleet/sessions/running.ts'
import { sling } from '../../src/fleet/sling/sling.ts'
import { isProvablyDead } from '../../src/isolation/agents-inside.ts'
import { liveness } from '../../src/process/identity.ts'
import { type FleetWorld, type FleetWorldOptions, makeFleetWorld } from './fleet.ts'

export const by = 'cli'
export const MINUTE = 60_000

/** A fleet whose time passes faster when a test says so. */
export const patrolled = async (options: FleetWorldOptions = {}) => {
  let passed = 0
  const clock = () => Date.now() + passed
  const world = await makeFleetWorld({ ...options, context: { clock, ...options.context } })
  return Object.assign(world, { clock, pass: (ms: number) => void (passed += ms) })
}

export type Patrolled = Awaited<ReturnType<typeof patrolled>>
export type AtWork = { readonly agent: FleetAgent; readonly environment: IsolatedEnvironment; readonly item: number }

export const atWork = async (world: FleetWorld): Promise<AtWork> => {
  const { id } = await world.addItem('Fix login')
  const slung = await sling(world.fleet, { item: id, by })
  if (slung.outcome !== 'started') throw new Error(`not started: ${JSON.stringify(slung)}`)
  await expect.poll(() => world.printed(slung.agent.name)).toContain('ready')
  return { agent: slung.agent, environment: slung.environment, item: id }
}

export const agentNow = async (
  { context: { store } }: FleetWorld,
  { agent }: Pick<AtWork, 'agent'>,
): Promise<FleetAgent> => (await store.fleetAgents.get(agent.id)) ?? expect.unreachable(`${agent.name} is forgotten`)

export const rootOf = ({ session }: FleetAgent): ProcessIdentity =>
  session?.root ?? expect.unreachable('it has no session')

export const killed = async (...roots: readonly ProcessIdentity[]): Promise<void> => {
  for (const { pid } of roots) process.kill(pid, 'SIGKILL')
  for (const root of roots) await expect.poll(() => liveness(root)).toBe('dead')
}

/** An agent's program kills itself; then the shell around it ends by itself. */
export const crash = async (
  world: FleetWorld,
  agent: FleetAgent,
  { leaves = 'nothing' }: { readonly leaves?: 'nothing' | 'processes' } = {},
): Promise<void> => {
  await world.order(agent.name, 'crash')
  await expect.poll(() => liveness(rootOf(agent))).toBe('dead')
  // What writes its log ends a moment after it.
  if (leaves === 'nothing') await expect.poll(() => isProvablyDead(world.context, agent)).toBe(true)
}

/** The process that the shell around an agent's program has started. */
export const programOf = ({ context: { home } }: FleetWorld, { name }: FleetAgent): ProcessIdentity =>
  programIn(agentDirectory(home, name)) ?? expect.unreachable(`${name} has no program`)

export const did = (findings: readonly Finding[]): string[] =>
  findings.map((one) => `${one.row}: ${one.agent ?? ''} ${one.did}`)

/** What a round found and did. */
export const round = async ({ fleet }: Pick<FleetWorld, 'fleet'>): Promise<string[]> => {
  const { findings, problems } = await patrol(fleet)
  expect(problems).toEqual([])
  return did(findings)
}

/** What a second round finds, a moment after one that only noted it. */
export const twoRounds = async (world: Patrolled): Promise<string[]> => {
  expect(await round(world)).toEqual([])
  world.pass(1_000)
  return round(world)
}

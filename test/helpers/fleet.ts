import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect } from 'vitest'
import type { Agent } from '../../src/agents/agent.ts'
import type { Workplace } from '../../src/commands/command.ts'
import { defaultPool } from '../../src/domain/config/fleet.ts'
import type { SessionKind } from '../../src/domain/fleet/agent.ts'
import type { Item } from '../../src/domain/fleet/item.ts'
import type { PoolSettings } from '../../src/domain/fleet/pool.ts'
import type { FleetEvent } from '../../src/domain/fleet/event.ts'
import type { FleetContext } from '../../src/fleet/context.ts'
import { recordEvent } from '../../src/fleet/events/record.ts'
import { endSession } from '../../src/fleet/end-session.ts'
import { agentDirectory, logFile } from '../../src/fleet/sessions/paths.ts'
import { createSessions } from '../../src/fleet/sessions/registry.ts'
import type { IsolationContext } from '../../src/isolation/context.ts'
import { createEnvironments } from '../../src/isolation/environments.ts'
import { knownPlatforms } from '../../src/platforms/capabilities.ts'
import type { NewItem } from '../../src/store/fleet/store.ts'
import { makeWorld, type World, type WorldOptions } from './world.ts'

/** A world with a fleet: real git, real SQLite, real tmux or processes, and a worker that does what a script says. */
export type FleetWorld = World & {
  readonly fleet: FleetContext
  /** What the conversations that follow an item were told. */
  readonly told: FleetEvent[]
  addItem(title: string, change?: Partial<NewItem>): Promise<Item>
  item(id: number): Promise<Item>
  /** What an agent's program has printed. */
  printed(name: string): string
  /** Tells a scripted worker what to do next, a line of shell. */
  order(name: string, line: string): Promise<void>
}

export type FleetWorldOptions = WorldOptions & {
  readonly kind?: SessionKind
  readonly pools?: readonly Partial<PoolSettings>[]
  readonly maxAgents?: number
  readonly agents?: readonly Agent[]
  readonly fleet?: Partial<FleetContext>
}

/** From a bundle, too. */
const root = process.env['COPPICE_TEST_ROOT'] ?? resolve(import.meta.dirname, '..', '..')

const script = join(root, 'test', 'helpers', 'fleet-worker.sh')

/** Of scripted workers. */
export const testPools = (pools: readonly Partial<PoolSettings>[]): readonly PoolSettings[] =>
  pools.map((pool) => ({ ...defaultPool, command: `sh ${script}`, names: ['alder', 'beech', 'cedar'], ...pool }))

/** As `main/fleet.ts` would make it, in this process. Nobody follows its items. */
export const fleetIn = (
  isolation: IsolationContext,
  env: Readonly<Record<string, string>>,
  agents: readonly Agent[] = [],
  installation: FleetContext['installation'] = [process.execPath, join(root, 'src', 'main.ts')],
): FleetContext => {
  const { home, clock, log, lock, settings } = isolation
  const environments = createEnvironments(isolation)
  return {
    isolation,
    environments: async () => environments,
    agents: new Map(agents.map((agent) => [agent.name, agent])),
    redact: (text) => text,
    cgroup: undefined,
    sessions: createSessions({ home, clock, log, lock, env }, settings.fleetSession),
    installation,
    executing: new Set(),
    wakeServer: async () => false,
    notify: async () => undefined,
    inBackground: async () => undefined,
  }
}

export const makeFleetWorld = async ({
  kind = 'process',
  pools = [{}],
  maxAgents = 20,
  agents = [],
  fleet: overrides = {},
  ...options
}: FleetWorldOptions = {}): Promise<FleetWorld> => {
  const world = await makeWorld({
    ...options,
    settings: { fleetSession: kind, maxAgents, pools: testPools(pools), ...options.settings },
  })
  const { context: isolation, box } = world
  const { home, clock } = isolation
  const told: FleetEvent[] = []
  const fleet: FleetContext = {
    ...fleetIn(isolation, box.env, agents),
    notify: async (store, event) => {
      told.push(event)
      await recordEvent({ isolation, redact: (text) => text }, store, event)
    },
    ...overrides,
  }
  const { sessions } = fleet
  return {
    ...world,
    fleet,
    told,
    addItem: async (title, change = {}) => {
      const item = await isolation.store.items.insert({
        codebaseId: world.codebase.id,
        title,
        body: '',
        priority: 2,
        after: [],
        source: undefined,
        createdBy: 'cli',
        createdAt: clock(),
        ...change,
      })
      if (item === undefined) throw new Error(`the item ${title} is there already`)
      return item
    },
    item: async (id) => (await isolation.store.items.get(id)) ?? expect.unreachable(`item ${id} is gone`),
    printed: (name) => (existsSync(logFile(home, name)) ? readFileSync(logFile(home, name), 'utf8') : ''),
    order: async (name, line) => {
      const agent = await isolation.store.fleetAgents.byName(isolation.host, name)
      const session = agent?.session ?? expect.unreachable(`${name} has no session`)
      await sessions.of(session.kind).send(session, line)
    },
    [Symbol.asyncDispose]: async () => {
      for (const agent of await isolation.store.fleetAgents.live()) await endSession(fleet, agent, { graceMs: 0 })
      await world[Symbol.asyncDispose]()
    },
  }
}

/** As commands open it. */
export const workplaceOf = ({ context, fleet, provider }: FleetWorld): Workplace => ({
  context,
  environments: async () => provider,
  fleet: async () => fleet,
  keepSpares: () => undefined,
  platforms: async () => knownPlatforms,
  databaseName: '',
})

/** Both sides of every hook agree, and nothing of an agent that is gone is left. */
export const assertHooksAgree = async ({ fleet }: FleetWorld): Promise<void> => {
  const { store, home, host } = fleet.isolation
  const agents = await store.fleetAgents.live({ host })
  const items = await store.items.list({})
  for (const agent of agents) {
    if (agent.itemId === undefined) continue
    const item = items.find(({ id }) => id === agent.itemId)
    expect(['hooked', 'parked'], `${agent.name} has item ${agent.itemId}`).toContain(item?.state)
  }
  for (const item of items) {
    const hooked = agents.filter(({ itemId }) => itemId === item.id)
    if (item.state === 'hooked') expect(hooked, `item ${item.id} is hooked`).toHaveLength(1)
    else expect(hooked.length, `item ${item.id} is ${item.state}`).toBeLessThanOrEqual(item.state === 'parked' ? 1 : 0)
  }
  const names = new Set(agents.map(({ name }) => name))
  for (const kind of fleet.sessions.all()) {
    for (const { name, dead } of await kind.list()) {
      if (!dead) expect(names, `the session of ${name}`).toContain(name)
    }
  }
  for (const name of ['alder', 'beech', 'cedar', 'alder-2']) {
    if (!names.has(name)) expect([name, existsSync(agentDirectory(home, name))]).toEqual([name, false])
  }
}

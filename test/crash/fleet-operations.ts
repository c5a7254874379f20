import { join } from 'node:path'
import type { Agent } from '../../src/agents/agent.ts'
import type { Codebase } from '../../src/domain/environment.ts'
import type { FleetAgent } from '../../src/domain/fleet/agent.ts'
import { toCodebaseId } from '../../src/domain/names.ts'
import type { FleetContext } from '../../src/fleet/context.ts'
import { addCrew, removeCrew } from '../../src/fleet/crew.ts'
import { fleetDown } from '../../src/fleet/down.ts'
import { done } from '../../src/fleet/formulas/done.ts'
import { workQueue } from '../../src/fleet/landing/queue.ts'
import { syncBeads } from '../../src/fleet/items/beads/sync.ts'
import { closeItem } from '../../src/fleet/items/close.ts'
import { isIdle, retireWorker } from '../../src/fleet/sling/idle-workers.ts'
import { sling, spawnIdle } from '../../src/fleet/sling/sling.ts'
import { fleetUp } from '../../src/fleet/up.ts'

/*
 * Operations of the fleet: done in the process that is killed, and in the one that recovers. Doing one that is done
 * already changes nothing.
 */

export type FleetOperation = (fleet: FleetContext) => Promise<void>

const by = 'test'

const live = ({ isolation: { store, host } }: FleetContext): Promise<FleetAgent[]> => store.fleetAgents.live({ host })

const slingFirst =
  (crew?: string): FleetOperation =>
  async (fleet) => {
    const item = await fleet.isolation.store.items.get(1)
    if (item?.state !== 'open') return
    const slung = await sling(fleet, { item: 1, by, crew })
    if (slung.outcome !== 'started') throw new Error(`not started: ${JSON.stringify(slung)}`)
  }

/** By the agent that has the first item; there is none once it is done. */
const finish =
  (mode: string): FleetOperation =>
  async (fleet) => {
    const agent = (await live(fleet)).find(({ itemId }) => itemId === 1)
    if (agent === undefined) return
    const result = await done(fleet, { agent: agent.name, spawn: agent.spawn, mode })
    if (result.outcome !== 'done') throw new Error(`not done: ${JSON.stringify(result)}`)
  }

const codebaseOf = async ({ isolation: { store } }: FleetContext): Promise<Codebase> => {
  const found = await store.codebases.get(toCodebaseId('project-id'))
  if (found === undefined) throw new Error('there is no such world')
  return found
}

export const CREW = 'rust'

/** Where the double of `bd` is, beside the home. */
export const bdDirectory = ({ isolation: { home } }: FleetContext): string => join(home, '..', 'bin')

/** Runs what its item says, as the worker in `test/helpers/fleet-worker.sh` does. */
export const scripted = (script: string): Agent => ({
  name: 'scripted',
  availability: async () => ({ state: 'ready', version: undefined }),
  run: async () => ({ outcome: 'failed', text: '' }),
  interactive: async () => ({ command: ['sh', script], variables: {} }),
})

/** The program that runs it turn by turn where there is no terminal: the same worker, instead of a whole Coppice. */
export const scriptedTurns = (script: string): FleetContext['installation'] => ['sh', script]

/** Its program was removed after somebody looked. */
export const lost: Agent = {
  name: 'lost',
  availability: async () => ({ state: 'ready', version: undefined }),
  run: async () => ({ outcome: 'failed', text: '' }),
}

/** Of a fleet in which that agent can't be run. */
export const NOWHERE = ['/no/such/program'] as const

export const crashPools = [{}, { name: 'lost', agent: 'lost', command: undefined }]

export const fleetOperations = {
  sling: slingFirst(),
  'sling-lost': async (fleet) => {
    await sling({ ...fleet, installation: NOWHERE }, { item: 1, by, pool: 'lost' }).then(
      () => Promise.reject(new Error('it started')),
      () => undefined,
    )
  },
  'sling-crew': slingFirst(CREW),
  /** A worker without an item. */
  idle: async (fleet) => {
    const [pool] = fleet.isolation.settings.pools
    const agent = pool && (await spawnIdle(fleet, { pool, codebase: await codebaseOf(fleet), by }))
    if (agent === undefined) throw new Error('nobody was started')
  },
  retire: async (fleet) => {
    for (const agent of (await live(fleet)).filter(isIdle)) await retireWorker(fleet, agent)
    const left = await live(fleet)
    if (left.some(({ state }) => state !== 'stopped')) throw new Error(`still there: ${JSON.stringify(left)}`)
  },
  'done-push': finish('push'),
  'done-pr': finish('pr'),
  'done-land': finish('land'),
  'done-discard': finish('discard'),
  'done-own': finish('release'),
  /** A red item's agent works on it again, and so lands nothing. */
  land: async (fleet) => {
    const outcome = await workQueue(fleet, await codebaseOf(fleet))
    if (outcome.outcome !== 'done' || outcome.left) throw new Error(`not worked off: ${JSON.stringify(outcome)}`)
  },
  up: async (fleet) => {
    const { problems } = await fleetUp(fleet, { by })
    if (problems.length > 0) throw new Error(JSON.stringify(problems))
  },
  down: async (fleet) => {
    const { problems } = await fleetDown(fleet, { by, graceMs: 0 })
    if (problems.length > 0) throw new Error(JSON.stringify(problems))
  },
  'down-clean': async (fleet) => {
    const { problems } = await fleetDown(fleet, { by, clean: true, graceMs: 0 })
    if (problems.length > 0) throw new Error(JSON.stringify(problems))
  },
  'sync-beads': async (fleet) => {
    const { isolation } = fleet
    const PATH = `${bdDirectory(fleet)}:${isolation.programEnvironment['PATH'] ?? ''}`
    const programEnvironment = { ...isolation.programEnvironment, PATH }
    const codebase = await codebaseOf(fleet)
    const words = { closed: 'Done', parked: () => 'Parked' }
    const sync = () =>
      syncBeads({ ...fleet, isolation: { ...isolation, programEnvironment } }, { codebase, by, dryRun: false, words })
    const { refused, left } = await sync()
    if (refused.length + left.length > 0) throw new Error(`beads and items differ: ${JSON.stringify([refused, left])}`)
    // Whatever happened before, both sides agree now.
    const again = await sync()
    if (again.pulled.length + again.pushed.length > 0) throw new Error(`not in step: ${JSON.stringify(again)}`)
  },
  close: async (fleet) => void (await closeItem(fleet, 1, by)),
  'crew-add': async (fleet) => {
    const codebase = await codebaseOf(fleet)
    if ((await live(fleet)).some(({ name }) => name === CREW)) return
    await addCrew(fleet, { name: CREW, codebases: [codebase], agent: 'scripted', by })
  },
  'crew-remove': async (fleet) => {
    if ((await live(fleet)).some(({ name }) => name === CREW)) await removeCrew(fleet, CREW)
  },
} satisfies Record<string, FleetOperation>

export type FleetOperationName = keyof typeof fleetOperations

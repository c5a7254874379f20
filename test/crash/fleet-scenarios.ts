import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ItemState } from '../../src/domain/fleet/item.ts'
import { anIssue, installBd } from '../helpers/bd/bd.ts'
import type { FleetWorld } from '../helpers/fleet.ts'
import { bdDirectory, CREW, fleetOperations, type FleetOperationName } from './fleet-operations.ts'

export type FleetScenario = {
  readonly name: string
  readonly operation: FleetOperationName
  readonly arrange: (world: FleetWorld) => Promise<void>
  /** Of the first item, after the operation. */
  readonly endsAs: ItemState
  /** The repository has a formula of its own. */
  readonly formula?: string
  /** The repository's settings. */
  readonly config?: string
  /** It needs a code host. */
  readonly forge?: true
  /** Its program ends at once, perhaps before a failpoint is reached that was passed last time. */
  readonly isQuick?: true
}

const added = async (world: FleetWorld): Promise<void> => void (await world.addItem('Fix login'))

const crewed = async (world: FleetWorld): Promise<void> => {
  await fleetOperations['crew-add'](world.fleet)
  await added(world)
}

const atWork = async (world: FleetWorld): Promise<void> => {
  await added(world)
  await fleetOperations.sling(world.fleet)
}

const committed = async (world: FleetWorld): Promise<void> => {
  await atWork(world)
  const [agent] = await world.context.store.fleetAgents.live()
  const environment = agent?.environmentId && (await world.context.store.environments.get(agent.environmentId))
  if (!environment) throw new Error('nobody is at work')
  writeFileSync(join(environment.path, 'login.txt'), 'fixed\n')
  world.box.raw(environment.path, 'add', 'login.txt')
  world.box.raw(environment.path, 'commit', '-qm', 'Fix the login')
}

/** Before the item is there, so that nobody has it. */
const idle = async (world: FleetWorld): Promise<void> => {
  await fleetOperations.idle(world.fleet)
  await added(world)
}

const stopped = async (world: FleetWorld): Promise<void> => {
  await committed(world)
  await fleetOperations.down(world.fleet)
}

/** Its agent is at work, and beads doesn't know it yet. */
const fromBeads = async (world: FleetWorld): Promise<void> => {
  installBd(world.repo.path, bdDirectory(world.fleet), [anIssue('bd-1')], world.box.path('shared.beads'))
  await fleetOperations['sync-beads'](world.fleet)
  await fleetOperations.sling(world.fleet)
}

/** Its agent has finished it, and it is queued. */
const queued = async (world: FleetWorld): Promise<void> => {
  await committed(world)
  await fleetOperations['done-land'](world.fleet)
}

/** Anybody who does something in the tree at the end is found by its directory. */
const green = 'landing: { gates: ["test -f login.txt", "(sleep 300 &)"] }\n'
const red = 'landing: { gates: ["! test -f login.txt"] }\n'

const formula = 'steps: [validate, {run: test -f login.txt}, intent, push, notify, settle, leave]\n'

export const fleetScenarios: readonly FleetScenario[] = [
  { name: 'a sling', operation: 'sling', arrange: added, endsAs: 'hooked' },
  { name: 'a sling of a program that is gone', operation: 'sling-lost', arrange: added, endsAs: 'open', isQuick: true },
  { name: 'a sling to a crew member', operation: 'sling-crew', arrange: crewed, endsAs: 'hooked' },
  { name: 'done: push', operation: 'done-push', arrange: committed, endsAs: 'closed' },
  { name: 'done: pr', operation: 'done-pr', arrange: committed, endsAs: 'in_review', forge: true },
  { name: 'done: land', operation: 'done-land', arrange: committed, endsAs: 'in_review' },
  { name: 'done: discard', operation: 'done-discard', arrange: committed, endsAs: 'open' },
  { name: 'done: a formula of the repository', operation: 'done-own', arrange: committed, endsAs: 'closed', formula },
  { name: 'landing', operation: 'land', arrange: queued, endsAs: 'landed', config: green },
  { name: 'landing what is red', operation: 'land', arrange: queued, endsAs: 'hooked', config: red },
  { name: 'down', operation: 'down', arrange: committed, endsAs: 'hooked' },
  { name: 'down --clean, with nothing to lose', operation: 'down-clean', arrange: atWork, endsAs: 'open' },
  { name: 'down --clean, with commits', operation: 'down-clean', arrange: committed, endsAs: 'hooked' },
  { name: 'up', operation: 'up', arrange: stopped, endsAs: 'hooked' },
  { name: 'letting an idle worker go', operation: 'retire', arrange: idle, endsAs: 'open' },
  { name: 'closing an item', operation: 'close', arrange: stopped, endsAs: 'closed' },
  { name: 'a sync with beads', operation: 'sync-beads', arrange: fromBeads, endsAs: 'hooked' },
  { name: 'adding a crew member', operation: 'crew-add', arrange: added, endsAs: 'open' },
  { name: 'removing a crew member', operation: 'crew-remove', arrange: crewed, endsAs: 'open' },
]

export const isCrew = (name: string): boolean => name === CREW

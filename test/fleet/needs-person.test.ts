import { expect, test } from 'vitest'
import type { DoneRefusal } from '../../src/domain/fleet/done-refusal.ts'
import type { NotPublished } from '../../src/domain/forge/publishing.ts'
import type { ParkReason } from '../../src/domain/fleet/item.ts'
import type { LandingBlock } from '../../src/domain/fleet/landing.ts'
import { needsPerson } from '../../src/domain/fleet/needs-person.ts'
import { parkItem } from '../../src/fleet/items/change.ts'
import { fleetStatus, type NeedsYou } from '../../src/fleet/status.ts'
import { anAgent, aRun } from '../helpers/fleet-values.ts'
import { makeFleetWorld } from '../helpers/fleet.ts'
import { anEnvironment } from '../helpers/store-values.ts'

/*
 * Events and `fleet status` say the same about what needs a person: each event is recorded for a state that the status
 * is asked about right after.
 */

const parked: { readonly [K in ParkReason['kind']]: Extract<ParkReason, { kind: K }> } = {
  asked: { kind: 'asked', note: undefined },
  crashed: { kind: 'crashed', restarts: 3 },
  'worktree-missing': { kind: 'worktree-missing', path: '/gone' },
  'other-branch': { kind: 'other-branch', branch: 'a', head: 'b' },
  'formula-failed': { kind: 'formula-failed', step: 'push', message: 'no' },
  'gate-failed': { kind: 'gate-failed', command: 'npm test', attempts: 2 },
  conflict: { kind: 'conflict', attempts: 2 },
  'pull-request-closed': { kind: 'pull-request-closed', url: 'https://example.com/1' },
  'status-elsewhere': { kind: 'status-elsewhere', source: 'beads', status: 'deferred' },
  'waits-elsewhere': { kind: 'waits-elsewhere', source: 'beads', ids: ['bd-1'] },
}

test.each(Object.values(parked))('parked: $kind', async (reason) => {
  await using world = await makeFleetWorld()
  const { store } = world.context
  const item = await world.addItem('One')
  await store.transaction((inside) => parkItem(world.fleet, inside, item, { reason, by: 'cli' }))
  const [record] = await store.events.page({ after: 0, limit: 9 })
  const { needsYou } = await fleetStatus(world.fleet)
  expect(record?.event).toMatchObject({ kind: 'parked', reason: { kind: reason.kind } })
  expect(needsYou.map(({ kind }) => kind)).toEqual(record?.event && needsPerson(record.event) ? ['parked'] : [])
})

const environment = anEnvironment('a')
const published = (why: NotPublished): DoneRefusal => ({ kind: 'not-published', environment, why })

const refusals: readonly DoneRefusal[] = [
  { kind: 'not-approved', codebase: 'project', commands: ['npm test'] },
  published({ kind: 'remote-changed', from: 'a', to: 'b' }),
  published({ kind: 'remote-unconfirmed', remote: 'origin', url: 'a', repository: '/r' }),
  published({ kind: 'remote-ambiguous', remotes: ['a', 'b'] }),
  published({ kind: 'no-remote' }),
  published({ kind: 'unreachable', said: 'no' }),
  published({ kind: 'is-base', base: 'main' }),
  { kind: 'no-commits', branch: 'a' },
  { kind: 'no-forge' },
  { kind: 'command-failed', command: 'npm test', exitCode: 1, log: '/log' },
  { kind: 'no-pull-request', said: 'no' },
]

test.each(refusals)('refused: $kind $why.kind', async (why) => {
  await using world = await makeFleetWorld()
  const { store, host } = world.context
  const item = await world.addItem('One')
  const agent = anAgent('alder', { host, codebaseId: world.codebase.id, state: 'working', itemId: item.id })
  await store.fleetAgents.insert(agent)
  const steps = [{ step: 'push', state: 'failed', why: [why] }] as const
  await store.formulaRuns.insert(aRun('r', agent.id, { itemId: item.id, state: 'refused', steps }))
  const isExpected = needsPerson({ kind: 'refused', item, agent: 'alder', why })
  expect((await fleetStatus(world.fleet)).needsYou.map(({ kind }) => kind)).toEqual(isExpected ? ['refused'] : [])
})

const blocks: readonly LandingBlock[] = [
  { kind: 'offline', detail: 'no' },
  { kind: 'base-moves', base: 'main', attempts: 5 },
  { kind: 'base-red', base: 'main', command: 'npm test', log: '/log' },
  { kind: 'not-approved', commands: ['npm test'] },
  { kind: 'rejected', said: 'no' },
  { kind: 'failed', message: 'no' },
]

test.each(blocks)('a landing queue that is blocked: $kind', async (why) => {
  await using world = await makeFleetWorld()
  const { store, host, self } = world.context
  const { id, name } = world.codebase
  await store.landings.claimQueue(id, undefined, { host, process: self })
  await store.landings.updateQueue(id, { blocked: { ...why, at: 1 } })
  const isExpected = needsPerson({ kind: 'landing-blocked', codebase: name, why })
  const kinds = (await fleetStatus(world.fleet)).needsYou.map(({ kind }) => kind)
  expect(kinds).toEqual(isExpected ? ['landing-blocked'] : [])
})

test('stuck, and mass death', async () => {
  await using world = await makeFleetWorld()
  const { store, host } = world.context
  const kinds = async (): Promise<NeedsYou['kind'][]> =>
    (await fleetStatus(world.fleet)).needsYou.map(({ kind }) => kind)
  await store.fleetAgents.insert(anAgent('alder', { host, codebaseId: world.codebase.id, state: 'stuck' }))
  expect(await kinds()).toEqual(['stuck'])
  expect(needsPerson({ kind: 'stuck', agent: 'alder', itemId: undefined, since: 1 })).toBe(true)
  await store.fleetControl.set(host, { state: 'paused', why: 'three agents died', since: 1 })
  expect(await kinds()).toEqual(['paused', 'stuck'])
  expect(needsPerson({ kind: 'mass-death', agents: ['alder'] })).toBe(true)
})

import { existsSync } from 'node:fs'
import { isProvablyDead } from '../../src/isolation/agents-inside.ts'
import { describe, expect, test } from 'vitest'
import type { FleetAgent } from '../../src/domain/fleet/agent.ts'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import type { FleetContext } from '../../src/fleet/context.ts'
import { fleetDown } from '../../src/fleet/down.ts'
import { endSession } from '../../src/fleet/end-session.ts'
import { closeItem, parkByHand } from '../../src/fleet/items/close.ts'
import { sling } from '../../src/fleet/sling/sling.ts'
import { liveness } from '../../src/process/identity.ts'
import { assertHooksAgree, type FleetWorld, makeFleetWorld } from '../helpers/fleet.ts'

const by = 'cli'

/** A Coppice of another host that uses the same database. */
const elsewhere = ({ fleet }: FleetWorld): FleetContext => ({
  ...fleet,
  isolation: { ...fleet.isolation, host: 'other-host' },
})

const atWork = async (
  world: FleetWorld,
): Promise<{ readonly agent: FleetAgent; readonly environment: IsolatedEnvironment; readonly item: number }> => {
  const { id } = await world.addItem('Fix login')
  const slung = await sling(world.fleet, { item: id, by })
  if (slung.outcome !== 'started') throw new Error(`not started: ${JSON.stringify(slung)}`)
  return { agent: slung.agent, environment: slung.environment, item: id }
}

const refused = { outcome: 'refused', why: { kind: 'other-host' } }

describe('from another host', () => {
  test('an item of a repository here is given to nobody', async () => {
    await using world = await makeFleetWorld()
    const { id } = await world.addItem('Fix login')
    expect(await sling(elsewhere(world), { item: id, by })).toMatchObject(refused)
    expect(await world.context.store.fleetAgents.live()).toEqual([])
    expect(await world.item(id)).toMatchObject({ state: 'open' })
  })

  test('an agent that is stopped here is not started', async () => {
    await using world = await makeFleetWorld()
    const { agent, item } = await atWork(world)
    await fleetDown(world.fleet, { by, only: [agent.name], graceMs: 0 })
    expect(await sling(elsewhere(world), { item, by })).toMatchObject(refused)
    expect(await world.context.store.fleetAgents.get(agent.id)).toMatchObject({ state: 'stopped', spawn: agent.spawn })
    expect(await sling(world.fleet, { item, by })).toMatchObject({ outcome: 'started' })
  })

  test('an agent that runs here with a parked item does not continue with it', async () => {
    await using world = await makeFleetWorld()
    const { item } = await atWork(world)
    await parkByHand(world.fleet, item, { note: undefined, by })
    expect(await sling(elsewhere(world), { item, by })).toMatchObject(refused)
    expect(await world.item(item)).toMatchObject({ state: 'parked' })
  })

  test('an item whose agent is here is not closed, not even while that is stopped', async () => {
    await using world = await makeFleetWorld()
    const { agent, environment, item } = await atWork(world)
    const busy = { code: 'busy', message: `the agent of item ${item} is on another machine` }
    await expect(closeItem(elsewhere(world), item, by)).rejects.toMatchObject(busy)
    await fleetDown(world.fleet, { by, only: [agent.name], graceMs: 0 })
    await expect(closeItem(elsewhere(world), item, by)).rejects.toMatchObject(busy)
    expect(existsSync(environment.path)).toBe(true)
    await assertHooksAgree(world)
  })

  test('an agent that runs here is neither ended nor taken for dead', async () => {
    await using world = await makeFleetWorld()
    const { agent } = await atWork(world)
    // Without a root, only what is found among the processes says that it runs.
    const seen = { ...agent, host: 'this-host', session: undefined }
    const context = elsewhere(world)
    expect(await isProvablyDead(context.isolation, { ...seen, spawn: 'not known there' })).toBe(false)
    expect(await endSession(context, { ...seen, spawn: 'not known there' }, { graceMs: 0 })).toBe(false)
    expect(await endSession(context, agent, { graceMs: 0 })).toBe(false)
    expect(agent.session && liveness(agent.session.root)).toBe('alive')
  })
})

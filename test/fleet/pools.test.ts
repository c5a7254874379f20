import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { reconcilePools } from '../../src/fleet/reconcile-pools.ts'
import { createFleetSchedule } from '../../src/fleet/schedule.ts'
import { done } from '../../src/fleet/formulas/done.ts'
import { parkByHand, reopenItem } from '../../src/fleet/items/close.ts'
import { sling } from '../../src/fleet/sling/sling.ts'
import type { FleetAgent } from '../../src/domain/fleet/agent.ts'
import type { PoolSettings } from '../../src/domain/fleet/pool.ts'
import { addCodebase } from '../../src/isolation/codebases/codebases.ts'
import { liveness } from '../../src/process/identity.ts'
import { assertHooksAgree, type FleetWorld, makeFleetWorld, testPools } from '../helpers/fleet.ts'

const by = 'cli'
const agents = ({ context: { store, host } }: FleetWorld) => store.fleetAgents.live({ host })

const states = async (world: FleetWorld): Promise<Record<string, readonly [string, number | null]>> =>
  Object.fromEntries((await agents(world)).map(({ name, state, itemId }) => [name, [state, itemId ?? null]]))

/** As after `config.yaml` was changed and the server started again. */
const withPools = (world: FleetWorld, pools: readonly Partial<PoolSettings>[], clock = Date.now): FleetWorld => {
  const isolation = {
    ...world.context,
    clock,
    settings: { ...world.context.settings, pools: testPools(pools) },
  }
  return { ...world, context: isolation, fleet: { ...world.fleet, isolation } }
}

const withoutSessions = (fleet: FleetWorld['fleet']): FleetWorld['fleet'] => ({
  ...fleet,
  sessions: {
    ...fleet.sessions,
    chosen: () => {
      throw new Error('no sessions today')
    },
  },
})

describe('a pool', () => {
  test('with `pull` takes ready items by itself: the most urgent first, none that waits, never more than `max`', async () => {
    await using world = await makeFleetWorld({ pools: [{ pull: true, max: 2 }] })
    const [slow, urgent, waiting, old] = [
      await world.addItem('slow', { priority: 4 }),
      await world.addItem('urgent', { priority: 0 }),
      await world.addItem('waiting', { priority: 0, after: [1] }),
      await world.addItem('old'),
    ]
    expect(await reconcilePools(world.fleet)).toMatchObject({ started: ['alder', 'beech'], problems: [] })
    expect(await states(world)).toEqual({ alder: ['working', urgent.id], beech: ['working', old.id] })
    expect(await reconcilePools(world.fleet)).toMatchObject({ started: [], problems: [] })
    for (const item of [slow, waiting]) expect((await world.item(item.id)).state).toBe('open')
    await assertHooksAgree(world)
  })

  test('takes nothing while the fleet is down, for another codebase, or without `pull`', async () => {
    await using world = await makeFleetWorld({ pools: [{ pull: true, codebases: ['web'] }, { name: 'hands' }] })
    await world.addItem('Fix login')
    expect(await reconcilePools(world.fleet)).toMatchObject({ started: [], problems: [] })
    const pulling = withPools(world, [{ pull: true, min: 1 }])
    await world.context.store.fleetControl.set('this-host', { state: 'down', why: '', since: 1 })
    expect(await reconcilePools(pulling.fleet)).toMatchObject({ started: [], problems: [] })
    expect(await agents(world)).toEqual([])
  })

  test('keeps `min` workers waiting; a waiting one gets the next item in the worktree that it has', async () => {
    await using world = await makeFleetWorld({ pools: [{ min: 2, max: 3 }] })
    expect(await reconcilePools(world.fleet)).toMatchObject({ started: ['alder', 'beech'], problems: [] })
    expect(await states(world)).toEqual({ alder: ['working', null], beech: ['working', null] })
    await expect.poll(() => world.printed('alder')).toContain('ready alder')
    const item = await world.addItem('Fix login')
    const result = await sling(world.fleet, { item: item.id, by })
    expect(result).toMatchObject({ outcome: 'started', agent: { name: 'alder', itemId: item.id } })
    await expect.poll(() => world.printed('alder')).toMatch(/told: You are alder.*Your item is 1: Fix login/)
    expect(await reconcilePools(world.fleet)).toMatchObject({ started: [], gone: [] })
    expect(Object.keys(await states(world))).toEqual(['alder', 'beech'])
    await assertHooksAgree(world)
  })

  test.each([
    ['worktree is no longer like new', async ({ repo }: FleetWorld) => void repo.commit('newer', 'base has moved')],
    [
      'session has ended, but not its program',
      async (_world: FleetWorld, { session }: FleetAgent) => {
        if (session === undefined) throw new Error('it has no session')
        process.kill(session.root.pid, 'SIGKILL')
        await expect.poll(() => liveness(session.root)).toBe('dead')
      },
    ],
  ])('a waiting worker whose %s makes room for a new one', async (_name, change) => {
    await using world = await makeFleetWorld({ pools: [{ min: 1, max: 1 }] })
    await reconcilePools(world.fleet)
    const [waiting = expect.unreachable('nobody waits')] = await agents(world)
    const environment = waiting.environmentId && (await world.context.store.environments.get(waiting.environmentId))
    if (!environment) throw new Error('nobody waits')
    await change(world, waiting)
    const item = await world.addItem('Fix login')
    expect(await sling(world.fleet, { item: item.id, by })).toMatchObject({ outcome: 'started' })
    expect(existsSync(environment.path)).toBe(false)
    const [worker] = await agents(world)
    expect(worker).toMatchObject({ state: 'working', itemId: item.id })
    expect(worker?.id).not.toBe(waiting.id)
    await assertHooksAgree(world)
  })

  test('that shrinks drains: no new items, time to finish, then the session ends and the worktree stays', async () => {
    await using world = await makeFleetWorld({ pools: [{ max: 3, pull: true }] })
    const items = [await world.addItem('one'), await world.addItem('two')]
    await reconcilePools(world.fleet)
    await world.addItem('three')
    let now = Date.now()
    const small = withPools(world, [{ max: 1, pull: true, drainTimeoutMs: 60_000 }], () => now)
    expect(await reconcilePools(small.fleet)).toMatchObject({ draining: ['beech'], gone: [], started: [] })
    expect(await states(small)).toEqual({ alder: ['working', 1], beech: ['draining', 2] })
    now += 59_000
    expect(await reconcilePools(small.fleet)).toMatchObject({ draining: [], gone: [], started: [] })
    const [, draining] = await agents(small)
    now += 2_000
    expect(await reconcilePools(small.fleet)).toMatchObject({ gone: ['beech'], started: [] })
    expect(liveness(draining?.session?.root ?? { pid: 0, startTime: '' })).toBe('dead')
    expect(await states(small)).toEqual({ alder: ['working', 1], beech: ['stopped', 2] })
    const environment = draining?.environmentId && (await small.context.store.environments.get(draining.environmentId))
    expect(environment && existsSync(environment.path)).toBe(true)
    expect((await small.item(items[1]?.id ?? 0)).state).toBe('hooked')
    await assertHooksAgree(small)
  })

  test('a draining worker may finish its item, and one whose place comes back stays', async () => {
    await using world = await makeFleetWorld({ remote: true, pools: [{ max: 3 }] })
    for (const title of ['one', 'two', 'three']) {
      const { id } = await world.addItem(title)
      await sling(world.fleet, { item: id, by })
    }
    const small = withPools(world, [{ max: 1 }])
    expect(await reconcilePools(small.fleet)).toMatchObject({ draining: expect.arrayContaining(['beech', 'cedar']) })
    const beech = (await agents(small)).find(({ name }) => name === 'beech')
    const environment = beech?.environmentId && (await small.context.store.environments.get(beech.environmentId))
    if (beech === undefined || !environment) throw new Error('beech is gone')
    writeFileSync(join(environment.path, 'two.txt'), 'two\n')
    world.box.raw(environment.path, 'add', 'two.txt')
    world.box.raw(environment.path, 'commit', '-qm', 'two')
    expect(await done(small.fleet, { agent: 'beech', spawn: beech.spawn, mode: 'push' })).toMatchObject({
      outcome: 'done',
    })
    await reconcilePools(withPools(world, [{ max: 2 }]).fleet)
    expect(await states(small)).toEqual({ alder: ['working', 1], cedar: ['working', 3] })
    await assertHooksAgree(small)
  })

  test('that is no longer configured keeps nobody who waits', async () => {
    await using world = await makeFleetWorld({ pools: [{ name: 'old', min: 1 }] })
    await reconcilePools(world.fleet)
    const { gone } = await reconcilePools(withPools(world, [{ name: 'new' }]).fleet)
    expect(gone).toEqual(['alder'])
    expect(await agents(world)).toEqual([])
    await assertHooksAgree(world)
  })

  test('one item that can’t be started doesn’t keep the others waiting', async () => {
    await using world = await makeFleetWorld({ pools: [{ pull: true, max: 2 }] })
    const [first, second] = [await world.addItem('one', { priority: 0 }), await world.addItem('two')]
    await sling(world.fleet, { item: first.id, by })
    const { problems, started } = await reconcilePools(withoutSessions(world.fleet))
    expect(problems).toEqual([{ pool: 'workers', why: expect.stringContaining(`item ${second.id}: `) }])
    expect(started).toEqual([])
    expect((await world.item(second.id)).state).toBe('open')
    await assertHooksAgree(world)
  })

  test('an item that can’t be started for long doesn’t keep the others waiting, however few workers there may be', async () => {
    await using world = await makeFleetWorld({ pools: [{ pull: true, max: 1 }] })
    const [first, second] = [await world.addItem('one', { priority: 0 }), await world.addItem('two')]
    const slung = await sling(world.fleet, { item: first.id, by })
    if (slung.outcome !== 'started') throw new Error(`not started: ${JSON.stringify(slung)}`)
    const { agent, environment } = slung
    world.box.raw(environment.path, 'commit', '-q', '--allow-empty', '-m', 'work')
    await done(world.fleet, { agent: agent.name, spawn: agent.spawn, mode: 'land' })
    await parkByHand(world.fleet, first.id, { note: undefined, by })
    await reopenItem(world.fleet, first.id, by)
    // It would continue there.
    renameSync(environment.path, `${environment.path}.away`)
    const { problems, started } = await reconcilePools(world.fleet)
    expect(problems).toMatchObject([{ why: expect.stringContaining(`item ${first.id}: `) }])
    expect(started).toEqual(['beech'])
    expect((await world.item(second.id)).state).toBe('hooked')
    // It isn't what a failed start made, though it seems to be newer.
    renameSync(`${environment.path}.away`, environment.path)
    const yesterday = withPools(world, [{ max: 3 }], () => Date.now() - 86_400_000)
    await expect(sling(withoutSessions(yesterday.fleet), { item: first.id, by })).rejects.toThrow('no sessions today')
    expect(existsSync(environment.path)).toBe(true)
    expect(await world.item(first.id)).toMatchObject({ state: 'open', environmentId: environment.id })
    // Its name is in use in every repository.
    const { codebase: lib } = await addCodebase(world.context, world.box.repo('lib').path, '/', {})
    const third = await world.addItem('three', { codebaseId: lib.id })
    const { fleet } = withPools(world, [{ max: 3 }])
    expect(await sling(fleet, { item: third.id, by })).toMatchObject({ agent: { name: 'cedar' } })
    await assertHooksAgree(world)
  })
})

describe('the schedule of a server', () => {
  const rounds = async (world: FleetWorld) => {
    const timers: { callback: () => void; afterMs: number }[] = []
    const { promise, resolve } = Promise.withResolvers<void>()
    let count = 0
    const schedule = createFleetSchedule({
      fleet: async () => world.fleet,
      isolation: world.context,
      onRound: () => {
        count += 1
        resolve()
      },
      setTimer: (callback, afterMs) => {
        timers.push({ callback, afterMs })
        return () => undefined
      },
    })
    return { schedule, timers, count: () => count, first: promise }
  }

  test('has no timer without agents and pools that start some; woken, it looks', async () => {
    await using world = await makeFleetWorld({})
    const { schedule, timers, count } = await rounds(world)
    schedule.start()
    await schedule.stop()
    expect([timers.length, count()]).toEqual([0, 0])
  })

  test('gives ready items to a pool that pulls, and looks again later', async () => {
    await using world = await makeFleetWorld({ pools: [{ pull: true }], settings: { patrolSeconds: 7 } })
    await world.addItem('Fix login')
    const { schedule, timers, first } = await rounds(world)
    schedule.start()
    await first
    await expect.poll(() => timers.length).toBe(1)
    expect(timers[0]?.afterMs).toBe(7_000)
    expect(await states(world)).toEqual({ alder: ['working', 1] })
    await schedule.stop()
  })
})

import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { done } from '../../src/fleet/formulas/done.ts'
import { fleetDown } from '../../src/fleet/down.ts'
import { closeItem, parkByHand, reopenItem } from '../../src/fleet/items/close.ts'
import { keepPools } from '../../src/fleet/keep-pools.ts'
import { recoverFleet } from '../../src/fleet/recover.ts'
import { addCrew } from '../../src/fleet/crew.ts'
import { sling } from '../../src/fleet/sling/sling.ts'
import { fleetUp } from '../../src/fleet/up.ts'
import { createEnvironments } from '../../src/isolation/environments.ts'
import { liveness } from '../../src/process/identity.ts'
import { type FleetWorld, makeFleetWorld } from '../helpers/fleet.ts'
import { openCopiedStore } from '../helpers/store.ts'

const by = 'cli'
const commit = (world: FleetWorld, path: string, name = 'login.txt') => {
  writeFileSync(join(path, name), 'fixed\n')
  world.box.raw(path, 'add', name)
  world.box.raw(path, 'commit', '-qm', name)
}
const start = async (world: FleetWorld, item?: number) => {
  const id = item ?? (await world.addItem('Fix login')).id
  const r = await sling(world.fleet, { item: id, by })
  if (r.outcome !== 'started') throw new Error(JSON.stringify(r))
  return { agent: r.agent, environment: r.environment, item: id }
}
const withoutDatabase = async (world: FleetWorld): Promise<FleetWorld> => {
  const store = await openCopiedStore(join(world.context.home, 'new.db'))
  onTestFinished(() => store.close())
  const context = { ...world.context, store, repoConfigs: new Map() }
  const environments = createEnvironments(context)
  const fleet = { ...world.fleet, isolation: context, environments: async () => environments }
  return { ...world, context, fleet, item: async (id) => (await store.items.get(id)) ?? expect.unreachable() }
}

test('A down --clean with commits on another branch keeps the hook', async () => {
  await using world = await makeFleetWorld({ remote: true })
  const work = await start(world)
  world.box.raw(work.environment.path, 'checkout', '-qb', 'fix')
  commit(world, work.environment.path)
  const r = await fleetDown(world.fleet, { by, clean: true, graceMs: 0 })
  console.log(
    'A',
    r.removed.length,
    r.kept.length,
    (await world.item(work.item)).state,
    existsSync(work.environment.path),
  )
})

test('A2 down --clean with branch renamed', async () => {
  await using world = await makeFleetWorld({ remote: true })
  const work = await start(world)
  world.box.raw(work.environment.path, 'branch', '-m', 'fix')
  commit(world, work.environment.path)
  const r = await fleetDown(world.fleet, { by, clean: true, graceMs: 0 })
  console.log(
    'A2',
    r.removed.length,
    r.kept.length,
    (await world.item(work.item)).state,
    existsSync(work.environment.path),
  )
})

test('B rebuild fails half-way', async () => {
  await using world = await makeFleetWorld({})
  const work = await start(world)
  const later = await withoutDatabase(world)
  const { store } = later.context
  const clock = () => Date.now() + 61_000
  const failing = {
    ...later.fleet,
    isolation: {
      ...later.context,
      clock,
      store: { ...store, items: { ...store.items, recover: () => Promise.reject(new Error('disk full')) } },
    },
  }
  const up = await fleetUp(failing, { by })
  console.log('B', up.problems, up.ended, liveness(work.agent.session!.root))
  const again = await fleetUp(later.fleet, { by })
  console.log('B again', again.rebuilt, again.problems)
  for (const env of await store.environments.live(world.codebase.id)) console.log('B env', env.branch, env.status)
})

test('B2 item number taken', async () => {
  await using world = await makeFleetWorld({})
  const work = await start(world)
  const later = await withoutDatabase(world)
  const { store } = later.context
  await store.codebases.insert?.(world.codebase as never).catch((e: unknown) => console.log(e))
  await store.items.insert({
    codebaseId: world.codebase.id,
    title: 'new',
    body: '',
    priority: 2,
    after: [],
    source: undefined,
    createdBy: by,
    createdAt: 1,
  })
  const clock = () => Date.now() + 61_000
  const up = await fleetUp({ ...later.fleet, isolation: { ...later.context, clock } }, { by })
  console.log('B2', up.problems, up.ended, up.rebuilt, liveness(work.agent.session!.root))
})

test('C settled items come back after the database is lost', async () => {
  await using world = await makeFleetWorld({ remote: true, pools: [{ done: 'push' }] })
  const work = await start(world)
  commit(world, work.environment.path)
  const fleet = {
    ...world.fleet,
    isolation: {
      ...world.context,
      failpoint: async (n: string) => {
        if (n === 'formula.push.done') writeFileSync(join(work.environment.path, 'late.txt'), 'x')
      },
    },
  }
  const r = await done(fleet, { agent: work.agent.name, spawn: work.agent.spawn })
  console.log('C', r.outcome, (await world.item(work.item)).state, existsSync(work.environment.path))
  const later = await withoutDatabase(world)
  const up = await fleetUp(later.fleet, { by })
  console.log(
    'C up',
    up.rebuilt,
    up.started.map((a) => [a.name, a.itemId]),
    (await later.context.store.items.get(work.item))?.state,
  )
  await fleetDown(later.fleet, { by, graceMs: 0 })
})

test('D formula stuck, then item closed', async () => {
  await using world = await makeFleetWorld({ remote: true, pools: [{ done: 'push' }] })
  const work = await start(world)
  commit(world, work.environment.path)
  const { path } = work.environment
  const fleet = {
    ...world.fleet,
    isolation: {
      ...world.context,
      failpoint: async (n: string) => {
        if (n === 'formula.intent.done') renameSync(path, `${path}.away`)
      },
    },
  }
  const r = await done(fleet, { agent: work.agent.name, spawn: work.agent.spawn }).catch((e: unknown) => e)
  console.log('D', String(r))
  await fleetDown(world.fleet, { by, only: [work.agent.name], graceMs: 0 })
  console.log(
    'D agent',
    (await world.context.store.fleetAgents.get(work.agent.id))?.state,
    (await world.context.store.formulaRuns.running()).length,
  )
  const closed = await closeItem(world.fleet, work.item, by)
  renameSync(`${path}.away`, path)
  console.log('D closed', closed.item.state, (await world.context.store.formulaRuns.running()).length)
  await recoverFleet(world.fleet)
  console.log(
    'D remote',
    world.box.raw(world.box.path('origin.git'), 'for-each-ref', '--format=%(refname:short)', 'refs/heads'),
    world.told.map(({ kind }) => kind),
    existsSync(path),
    (await world.context.store.formulaRuns.running()).length,
  )
})

test('E formula stuck, agent woken', async () => {
  await using world = await makeFleetWorld({ remote: true, pools: [{ done: 'push' }] })
  const work = await start(world)
  commit(world, work.environment.path)
  const { path } = work.environment
  const fleet = {
    ...world.fleet,
    isolation: {
      ...world.context,
      failpoint: async (n: string) => {
        if (n === 'formula.intent.done') renameSync(path, `${path}.away`)
      },
    },
  }
  await done(fleet, { agent: work.agent.name, spawn: work.agent.spawn }).catch((e: unknown) => e)
  await fleetDown(world.fleet, { by, only: [work.agent.name], graceMs: 0 })
  renameSync(`${path}.away`, path)
  const again = await sling(world.fleet, { item: work.item, by })
  console.log('E', again.outcome, again.outcome === 'started' && again.agent.state)
  writeFileSync(join(path, 'half.txt'), 'half')
  await recoverFleet(world.fleet)
  console.log(
    'E after',
    (await world.context.store.fleetAgents.get(work.agent.id))?.state,
    (await world.item(work.item)).state,
    again.outcome === 'started' && liveness(again.agent.session!.root),
  )
})

test('F an item that a crew member had, parked in review and reopened', async () => {
  await using world = await makeFleetWorld({ remote: true, pools: [{ max: 1, pull: true }] })
  const crew = await addCrew(world.fleet, { name: 'rust', codebases: [world.codebase], by }).catch(
    (e: unknown) => (console.log('F crew', String(e)), undefined),
  )
  if (crew?.outcome !== 'added') return
  console.log('F crew', crew.agent.state)
  const a = await world.addItem('one')
  console.log(await sling(world.fleet, { item: a.id, crew: 'rust', by }).then((r) => r.outcome))
  commit(world, crew.trees[0]!.environment.path)
  const agent = (await world.context.store.fleetAgents.byName(world.context.host, 'rust'))!
  console.log((await done(world.fleet, { agent: 'rust', spawn: agent.spawn, mode: 'land' })).outcome)
  await parkByHand(world.fleet, a.id, { note: undefined, by })
  console.log((await reopenItem(world.fleet, a.id, by)).state)
  await world.addItem('two')
  console.log(
    'F',
    await sling(world.fleet, { item: a.id, by }).then(
      (r) => JSON.stringify(r).slice(0, 200),
      (e: unknown) => String(e),
    ),
  )
  console.log('F pools', await keepPools(world.fleet))
  // after the database is lost
  const later = await withoutDatabase(world)
  const up = await fleetUp(later.fleet, { by })
  console.log(
    'F up',
    up.rebuilt,
    up.started.map((x) => [x.name, x.itemId]),
    up.problems,
    (await later.context.store.items.list({})).map((i) => [i.id, i.state]),
    (await later.context.store.fleetAgents.live({})).map((x) => [x.name, x.state, x.itemId]),
  )
  await fleetDown(later.fleet, { by, graceMs: 0 })
})

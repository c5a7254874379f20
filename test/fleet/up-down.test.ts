import { copyFileSync, existsSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { ItemSource } from '../../src/domain/fleet/item.ts'
import type { FleetAgent, FleetSession, SessionKind } from '../../src/domain/fleet/agent.ts'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import { readAgentFile, writeAgentFile } from '../../src/fleet/agent-file.ts'
import { addCrew, addCrewTree } from '../../src/fleet/crew.ts'
import { done } from '../../src/fleet/formulas/done.ts'
import { fleetDown } from '../../src/fleet/down.ts'
import { endSession } from '../../src/fleet/end-session.ts'
import { closeItem, parkByHand } from '../../src/fleet/items/close.ts'
import { sling } from '../../src/fleet/sling/sling.ts'
import { fleetStatus } from '../../src/fleet/status.ts'
import { treeOf } from '../../src/fleet/tree.ts'
import { stopAgent } from '../../src/fleet/stop-agent.ts'
import { stopEnded } from '../../src/fleet/stop-ended.ts'
import { endStraySessions } from '../../src/fleet/stray-sessions.ts'
import { fleetUp } from '../../src/fleet/up.ts'
import { addCodebase } from '../../src/isolation/codebases/codebases.ts'
import { isProvablyDead } from '../../src/isolation/agents-inside.ts'
import { acquireLease } from '../../src/isolation/lease.ts'
import { createEnvironments } from '../../src/isolation/environments.ts'
import { liveness } from '../../src/process/identity.ts'
import type { Store } from '../../src/store/store.ts'
import { scripted } from '../crash/fleet-operations.ts'
import { assertHooksAgree, type FleetWorld, type FleetWorldOptions, makeFleetWorld } from '../helpers/fleet.ts'
import { openCopiedStore } from '../helpers/store.ts'
import { runnableKinds } from '../helpers/tmux.ts'

const by = 'cli'

type AtWork = { readonly agent: FleetAgent; readonly environment: IsolatedEnvironment; readonly item: number }

type Change = { readonly pool?: string; readonly commit?: boolean; readonly source?: ItemSource }

const atWork = async (world: FleetWorld, change: Change = {}) => {
  const { id } = await world.addItem('Fix login', { source: change.source })
  const result = await sling(world.fleet, { item: id, by, pool: change.pool })
  if (result.outcome !== 'started') throw new Error(`not started: ${JSON.stringify(result)}`)
  const work: AtWork = { agent: result.agent, environment: result.environment, item: id }
  if (change.commit === true) commitIn(world, work)
  return work
}

const commitIn = ({ box }: FleetWorld, { environment: { path } }: AtWork): void => {
  writeFileSync(join(path, 'login.txt'), 'fixed\n')
  box.raw(path, 'add', 'login.txt')
  box.raw(path, 'commit', '-qm', 'Fix the login')
}

const rootOf = (session: FleetSession | undefined) => session?.root ?? { pid: 0, startTime: '' }
const named = (agents: readonly { readonly name: string }[]): string[] => agents.map(({ name }) => name)
const now = async ({ fleet: { isolation } }: FleetWorld, { agent }: AtWork): Promise<FleetAgent> =>
  (await isolation.store.fleetAgents.get(agent.id)) ?? expect.unreachable(`${agent.name} is forgotten`)

describe('down and up', () => {
  test('keep worktrees, files and hooks; every agent continues where it was', async () => {
    await using world = await makeFleetWorld({ pools: [{}] })
    const [first, second] = [await atWork(world, { commit: true }), await atWork(world)]
    writeFileSync(join(second.environment.path, 'half.txt'), 'half\n')
    await parkByHand(world.fleet, second.item, { note: 'Which API?', by })
    const down = await fleetDown(world.fleet, { by, graceMs: 0 })
    expect(named(down.stopped).toSorted()).toEqual(['alder', 'beech'])
    expect(down).toMatchObject({ removed: [], kept: [], problems: [] })
    for (const work of [first, second]) {
      expect(liveness(rootOf(work.agent.session))).toBe('dead')
      expect(await now(world, work)).toMatchObject({ state: 'stopped', itemId: work.item, session: undefined })
    }
    expect(await sling(world.fleet, { item: first.item, by })).toMatchObject({ why: { kind: 'fleet-down' } })
    await assertHooksAgree(world)
    const up = await fleetUp(world.fleet, { by })
    expect(up).toMatchObject({ running: [], released: [], kept: [], ended: [], problems: [] })
    expect(named(up.started).toSorted()).toEqual(['alder', 'beech'])
    for (const work of [first, second]) {
      const agent = await now(world, work)
      expect(agent).toMatchObject({ state: 'working', environmentId: work.environment.id, itemId: work.item })
      expect(liveness(rootOf(agent.session))).toBe('alive')
      // A command of the earlier life is refused.
      expect(agent.spawn).not.toBe(work.agent.spawn)
      expect(await done(world.fleet, { agent: agent.name, spawn: work.agent.spawn })).toMatchObject({
        why: { kind: 'other-life' },
      })
    }
    // Whoever still ends the earlier life leaves the sessions of this one alone.
    for (const { agent } of [first, second]) expect(await endSession(world.fleet, agent, { graceMs: 0 })).toBe(true)
    expect(named(await world.fleet.sessions.of('process').list()).toSorted()).toEqual(['alder', 'beech'])
    expect(existsSync(join(second.environment.path, 'half.txt'))).toBe(true)
    // Nobody has answered.
    expect(await world.item(second.item)).toMatchObject({ state: 'parked', parked: { note: 'Which API?' } })
    expect(world.told.map(({ kind }) => kind)).toEqual(['started', 'started', 'parked', 'restarted'])
    expect(await sling(world.fleet, { item: second.item, by })).toMatchObject({ outcome: 'started' })
    expect(await world.item(second.item)).toMatchObject({ state: 'hooked', parked: undefined })
    expect(await fleetUp(world.fleet, { by })).toMatchObject({ started: [], problems: [] })
    await assertHooksAgree(world)
  })

  test('one agent by name stops and starts; the others and the fleet stay', async () => {
    const waits: string[] = []
    await using world = await makeFleetWorld({ context: { progress: (message) => void waits.push(message) } })
    const [first, second] = [await atWork(world), await atWork(world)]
    await parkByHand(world.fleet, first.item, { note: undefined, by })
    expect(named((await fleetDown(world.fleet, { by, only: ['alder'], graceMs: 0 })).stopped)).toEqual(['alder'])
    expect(waits).toContain('stopping alder')
    expect((await now(world, second)).state).toBe('working')
    // Not while something of its last session runs, or while somebody else works there.
    const { context, codebase, fleet } = world
    const { fleetAgents } = context.store
    await fleetAgents.update(first.agent.id, { session: { ...first.agent.session!, root: context.self } })
    await expect(sling(fleet, { item: first.item, by })).rejects.toThrow('still running')
    await fleetAgents.update(first.agent.id, { session: undefined })
    const run = await acquireLease(context, codebase, first.environment, { purpose: 'a run' })
    await expect(sling(fleet, { item: first.item, by })).rejects.toThrow('is in use: a run')
    await run.release()
    expect(await now(world, first)).toMatchObject({ state: 'stopped' })
    expect(await sling(fleet, { item: first.item, by })).toMatchObject({ outcome: 'started' })
    expect((await now(world, first)).state).toBe('working')
    expect(await world.item(first.item)).toMatchObject({ state: 'hooked' })
    // Whoever still ends its last life leaves this one alone.
    expect((await stopAgent(fleet, first.agent, { graceMs: 0 })).outcome).toBe('running')
    expect(await now(world, first)).toMatchObject({ state: 'working', session: { kind: 'process' } })
    expect(await fleet.sessions.of('process').list()).toContainEqual(
      expect.objectContaining({ name: 'alder', dead: false }),
    )
  })

  test.each(['program', 'shell around its program'] as const)(
    'one whose %s was killed is restarted by up and by sling, once nothing of it runs',
    async (killed) => {
      await using world = await makeFleetWorld()
      const { item, environment } = await atWork(world)
      writeFileSync(join(environment.path, 'half.txt'), 'half\n')
      const { fleet } = world
      const restart = {
        up: async () => expect(named((await fleetUp(fleet, { by, only: ['alder'] })).started)).toEqual(['alder']),
        sling: async () => expect(await sling(fleet, { item, by })).toMatchObject({ outcome: 'started' }),
      }
      for (const command of ['up', 'sling'] as const) {
        const [before] = await fleet.isolation.store.fleetAgents.live({})
        if (before?.session === undefined) throw new Error('it has no session')
        expect(await sling(fleet, { item, by })).toMatchObject({ why: { kind: 'hooked' } })
        if (killed === 'program') await world.order('alder', 'crash')
        else process.kill(before.session.root.pid, 'SIGKILL')
        await expect.poll(async () => (await fleetStatus(fleet)).needsYou).toMatchObject([{ kind: 'no-session' }])
        await expect.poll(() => isProvablyDead(fleet.isolation, before)).toBe(killed === 'program')
        const unstoppable = stopEnded(fleet, { ...before, host: 'elsewhere' })
        await expect(unstoppable).rejects.toThrow('last session are still running')
        await restart[command]()
        expect(await isProvablyDead(fleet.isolation, before)).toBe(true)
        const [after = expect.unreachable()] = await fleet.isolation.store.fleetAgents.live({})
        const same = { id: before.id, environmentId: environment.id, itemId: item, restarts: 0 }
        expect(after).toMatchObject({ ...same, state: 'working' })
        expect(after.spawn).not.toBe(before.spawn)
        expect(liveness(rootOf(after.session))).toBe('alive')
      }
      expect(existsSync(join(environment.path, 'half.txt'))).toBe(true)
      await assertHooksAgree(world)
    },
  )

  test('pools stop before those that they depend on, and the crew last', async () => {
    await using world = await makeFleetWorld({
      pools: [
        { name: 'builders' },
        { name: 'testers', dependsOn: ['builders'] },
        { name: 'leads', dependsOn: ['testers'] },
      ],
    })
    const works = [
      await atWork(world, { pool: 'builders' }),
      await atWork(world, { pool: 'testers' }),
      await atWork(world, { pool: 'leads' }),
    ]
    const stopped: string[] = []
    const failpoint = async (name: string): Promise<void> => {
      if (name !== 'session.ended') return
      for (const { agent } of works) {
        const pool = agent.pool ?? ''
        if (liveness(rootOf(agent.session)) === 'dead' && !stopped.includes(pool)) stopped.push(pool)
      }
    }
    await fleetDown({ ...world.fleet, isolation: { ...world.context, failpoint } }, { by, graceMs: 0 })
    expect(stopped).toEqual(['leads', 'testers', 'builders'])
  })

  test('down --clean removes what loses nothing, and says what it kept and why', async () => {
    const names = ['alder', 'beech', 'cedar', 'fir', 'larch', 'maple']
    await using world = await makeFleetWorld({ remote: true, pools: [{ names, max: 6 }] })
    const untouched = await atWork(world)
    const committed = await atWork(world, { commit: true })
    const dirty = await atWork(world)
    const parked = await atWork(world)
    const elsewhere = await atWork(world)
    world.box.raw(elsewhere.environment.path, 'checkout', '-qb', 'fix')
    commitIn(world, elsewhere)
    const renamed = await atWork(world)
    world.box.raw(renamed.environment.path, 'branch', '-m', 'renamed')
    writeFileSync(join(dirty.environment.path, 'half.txt'), 'half\n')
    await parkByHand(world.fleet, parked.item, { note: 'Which API?', by })
    const { removed, kept, problems } = await fleetDown(world.fleet, { by, clean: true, graceMs: 0 })
    expect(problems).toEqual([])
    expect(named(removed)).toEqual(['alder'])
    const reasons = kept.map(({ agent, reasons: why }) => [agent.name, why.map(({ gate }) => gate)])
    expect(reasons).toEqual([
      ['beech', ['nobody-elses']],
      ['cedar', ['nothing-uncommitted']],
      ['fir', ['nobody-elses']],
      ['larch', ['nobody-elses']],
      ['maple', ['nobody-elses']],
    ])
    expect(existsSync(untouched.environment.path)).toBe(false)
    expect(await world.item(untouched.item)).toMatchObject({ state: 'open', environmentId: undefined })
    for (const { environment, item } of [committed, dirty, parked, elsewhere, renamed]) {
      expect(existsSync(environment.path)).toBe(true)
      expect(['hooked', 'parked']).toContain((await world.item(item)).state)
    }
    await assertHooksAgree(world)
    // The name is free again, and the item can be slung again.
    await fleetUp(world.fleet, { by })
    expect(await sling(world.fleet, { item: untouched.item, by })).toMatchObject({ agent: { name: 'alder' } })
    await assertHooksAgree(world)
  })

  test('a session of nobody is ended once it isn’t young, and only then', async () => {
    await using world = await makeFleetWorld({})
    const work = await atWork(world)
    const { store } = world.context
    const minuteLater = () => Date.now() + 61_000
    // Its agent is recorded while the sessions are looked at.
    let asked = 0
    const byName: typeof store.fleetAgents.byName = async (host, name) =>
      (asked += 1) === 1 ? undefined : store.fleetAgents.byName(host, name)
    const recording = { ...store, fleetAgents: { ...store.fleetAgents, byName } }
    const context = { ...world.context, store: recording, clock: minuteLater }
    expect(await endStraySessions({ ...world.fleet, isolation: context })).toEqual([])
    expect(asked).toBe(2)
    await store.fleetAgents.move(work.agent.id, 'working', 'crashed')
    await store.transaction(async (inside) => {
      await inside.fleetAgents.move(work.agent.id, 'crashed', 'gone', { itemId: undefined })
    })
    const later = { ...world.fleet, isolation: { ...world.context, clock: minuteLater } }
    expect((await fleetUp(world.fleet, { by })).ended).toEqual([])
    expect(liveness(rootOf(work.agent.session))).toBe('alive')
    expect((await fleetUp(later, { by })).ended).toEqual(['alder'])
    expect(liveness(rootOf(work.agent.session))).toBe('dead')
    expect(existsSync(work.environment.path)).toBe(true)
  })
})

/** The same home and worktrees, with a database that knows nothing. */
const withoutDatabase = async (world: FleetWorld): Promise<FleetWorld> => {
  const store = await openCopiedStore(join(world.context.home, 'new.db'))
  onTestFinished(() => store.close())
  // Rows of ours may be in memory; a new process has none.
  const context = { ...world.context, store, repoConfigs: new Map() }
  const environments = createEnvironments(context)
  const fleet = { ...world.fleet, isolation: context, environments: async () => environments }
  return { ...world, context, fleet, item: async (id) => (await store.items.get(id)) ?? expect.unreachable() }
}

describe.each<FleetWorldOptions & { readonly kind: SessionKind }>([
  { kind: runnableKinds[0], settings: { isolationProvider: 'worktree' } },
  { kind: 'process', settings: { isolationProvider: 'clone' } },
])('after the database was lost (sessions: $kind, $settings.isolationProvider)', (options) => {
  test('up finds agents, items, hooks and sessions again, and each continues', async () => {
    await using world = await makeFleetWorld({ ...options, remote: true })
    const issue = { kind: 'github', repository: 'acme/app', number: 7 } as const
    const seen = { title: 't', body: 'b', priority: 2, after: [] } as const
    const running = await atWork(world, { commit: true, source: { ...issue, seen } })
    const stopped = await atWork(world)
    writeFileSync(join(stopped.environment.path, 'half.txt'), 'half\n')
    await fleetDown(world.fleet, { by, only: [stopped.agent.name], graceMs: 0 })
    const inReview = await atWork(world, { commit: true })
    await done(world.fleet, { agent: inReview.agent.name, spawn: inReview.agent.spawn, mode: 'land' })
    const later = await withoutDatabase(world)
    const up = await fleetUp(later.fleet, { by })
    expect(up.problems).toEqual([])
    expect(up.rebuilt).toMatchObject({ items: [1, 2, 3], agents: [running.agent.name, stopped.agent.name] })
    expect(named(up.running)).toEqual([running.agent.name])
    expect(named(up.started)).toEqual([stopped.agent.name])
    expect(liveness(rootOf(running.agent.session))).toBe('alive')
    expect(await now(later, running)).toMatchObject({ state: 'working', itemId: 1, spawn: running.agent.spawn })
    expect(await now(later, stopped)).toMatchObject({ state: 'working', itemId: 2 })
    for (const [work, state] of [
      [running, 'hooked'],
      [stopped, 'hooked'],
      [inReview, 'in_review'],
    ] as const) {
      expect(await later.item(work.item)).toMatchObject({ state, title: 'Fix login' })
      expect(existsSync(work.environment.path)).toBe(true)
    }
    // The next import finds it, and reads anew what is there.
    expect((await later.item(running.item)).source).toEqual(issue)
    expect(existsSync(join(stopped.environment.path, 'half.txt'))).toBe(true)
    await assertHooksAgree(later)
    // Its own life goes on, and new items get new numbers.
    const { outcome } = await done(later.fleet, { agent: 'alder', spawn: running.agent.spawn, mode: 'push' })
    expect(outcome).toBe('done')
    const added = await later.context.store.items.insert({
      codebaseId: (await later.item(2)).codebaseId,
      title: 'next',
      body: '',
      priority: 2,
      after: [],
      source: undefined,
      createdBy: by,
      createdAt: 1,
    })
    expect(added?.id).toBe(4)
    expect(await fleetUp(later.fleet, { by })).toMatchObject({ rebuilt: { agents: [], items: [] }, started: [] })
    await fleetDown(later.fleet, { by, graceMs: 0 })
    await assertHooksAgree(later)
  })
})

test('an agent that claims to be another one is not rebuilt, and the other one is', async () => {
  await using world = await makeFleetWorld({})
  const [liar, honest] = [await atWork(world), await atWork(world)]
  await fleetDown(world.fleet, { by, graceMs: 0 })
  const file = ({ environment }: AtWork): string =>
    join(world.box.raw(environment.path, 'rev-parse', '--absolute-git-dir'), 'coppice-agent.json')
  copyFileSync(file(honest), file(liar))
  const later = await withoutDatabase(world)
  const { rebuilt, started, problems } = await fleetUp(later.fleet, { by })
  expect(rebuilt).toMatchObject({ agents: [honest.agent.name], items: [honest.item] })
  expect(named(started)).toEqual([honest.agent.name])
  expect(await now(later, honest)).toMatchObject({ id: honest.agent.id })
  expect(problems).toMatchObject([{ agent: honest.agent.name, why: expect.stringContaining(liar.environment.path) }])
  expect(existsSync(liar.environment.path)).toBe(true)
  await fleetDown(later.fleet, { by, graceMs: 0 })
})

/** Its first transaction in which an item is recovered fails at its end. */
const failingOnce = ({ context: { store } }: FleetWorld): Store => {
  let hasFailed = false
  const transaction: Store['transaction'] = (work) =>
    store.transaction(async (inside) => {
      let isRebuild = false
      const recover: Store['items']['recover'] = (item) => {
        isRebuild = true
        return inside.items.recover(item)
      }
      const result = await work({ ...inside, items: { ...inside.items, recover } })
      if (!isRebuild || hasFailed) return result
      hasFailed = true
      throw new Error('the disk is full')
    })
  return { ...store, transaction }
}

test('what fails while it is rebuilt stays as it is, its session too, and is rebuilt the next time', async () => {
  await using world = await makeFleetWorld({})
  const work = await atWork(world)
  const lost = await withoutDatabase(world)
  const { store } = lost.context
  const context = { ...lost.context, store: failingOnce(lost), clock: () => Date.now() + 61_000 }
  // Its file doesn't know of the session that runs.
  const tree = await treeOf(world.context, world.codebase, work.environment)
  writeAgentFile(tree, { ...work.agent, spawn: 'of an earlier life' }, await world.item(work.item))
  const unknown = await fleetUp({ ...lost.fleet, isolation: context }, { by })
  expect(unknown.problems).toMatchObject([{ why: expect.stringContaining('another session called alder is running') }])
  expect(unknown.ended).toEqual([])
  writeAgentFile(tree, work.agent, await world.item(work.item))
  const first = await fleetUp({ ...lost.fleet, isolation: context }, { by })
  expect(first.problems).toMatchObject([{ agent: 'alder', why: expect.stringContaining('the disk is full') }])
  expect(first.ended).toEqual([])
  expect(await store.fleetAgents.live({})).toEqual([])
  const [codebase] = await store.codebases.list(lost.context.host)
  if (codebase === undefined) throw new Error('the repository is not registered')
  expect(await store.environments.live(codebase.id)).toEqual([])
  // Its number is given to another item before it is rebuilt.
  const other = { title: 'Write docs', body: '', priority: 2, after: [], source: undefined } as const
  await store.items.insert({ codebaseId: codebase.id, ...other, createdBy: by, createdAt: 1 })
  const { rebuilt, running, ended, problems } = await fleetUp({ ...lost.fleet, isolation: context }, { by })
  expect({ ...rebuilt, ended, problems }).toMatchObject({ agents: ['alder'], items: [2], ended: [], problems: [] })
  expect(named(running)).toEqual(['alder'])
  expect(liveness(rootOf(work.agent.session))).toBe('alive')
  expect(await now(lost, work)).toMatchObject({ state: 'working', itemId: 2, spawn: work.agent.spawn })
  expect(await lost.item(2)).toMatchObject({ state: 'hooked', title: 'Fix login' })
  expect(readAgentFile(await treeOf(context, codebase, work.environment))?.item).toMatchObject({ id: 2 })
  await fleetDown(lost.fleet, { by, graceMs: 0 })
})

test('nobody begins again with what was finished before the database was lost', async () => {
  const script = resolve(import.meta.dirname, '../helpers/fleet-worker.sh')
  await using world = await makeFleetWorld({ agents: [scripted(script)], pools: [{ done: 'push' }] })
  const { fleet, context, codebase } = world
  // Each worktree stays: there is something in it that isn't committed.
  const late = ({ environment: { path } }: Pick<AtWork, 'environment'>): void =>
    writeFileSync(join(path, 'late.txt'), 'late\n')
  const finished = await atWork(world, { commit: true })
  const failpoint = async (name: string): Promise<void> => void (name === 'formula.push.done' && late(finished))
  const finishing = { ...fleet, isolation: { ...context, failpoint } }
  await done(finishing, { agent: finished.agent.name, spawn: finished.agent.spawn })
  const closed = await atWork(world)
  late(closed)
  await fleetDown(fleet, { by, only: [closed.agent.name], graceMs: 0 })
  await closeItem(fleet, closed.item, by)
  await addCrew(fleet, { name: 'rust', codebases: [codebase], agent: 'scripted', by })
  const { id } = await world.addItem('Write docs')
  const given = await sling(fleet, { item: id, by, crew: 'rust' })
  if (given.outcome !== 'started') throw new Error(`not started: ${JSON.stringify(given)}`)
  const { agent, environment } = given
  commitIn(world, { agent, environment, item: id })
  await done(fleet, { agent: 'rust', spawn: agent.spawn, mode: 'push' })
  // Its next item is in another repository.
  const { codebase: lib } = await addCodebase(context, world.box.repo('lib').path, '/', {})
  await addCrewTree(fleet, 'rust', lib, { by })
  const next = await world.addItem('Release', { codebaseId: lib.id })
  await sling(fleet, { item: next.id, by, crew: 'rust' })
  await fleetDown(fleet, { by, graceMs: 0 })
  const lost = await withoutDatabase(world)
  const { rebuilt, started, problems } = await fleetUp(lost.fleet, { by })
  const items = [finished.item, closed.item, next.id]
  expect({ ...rebuilt, problems }).toEqual({ agents: ['rust'], items, problems: [] })
  expect(started).toMatchObject([{ name: 'rust', itemId: next.id }])
  await assertHooksAgree(lost)
  for (const { environment: its, item } of [finished, closed]) {
    expect(await lost.item(item)).toMatchObject({ state: 'closed', environmentId: undefined })
    expect(existsSync(join(its.path, 'late.txt'))).toBe(true)
  }
  await fleetDown(lost.fleet, { by, graceMs: 0 })
})

import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { addCrew } from '../../src/fleet/crew.ts'
import { fleetDown } from '../../src/fleet/down.ts'
import { parkByHand } from '../../src/fleet/items/close.ts'
import { runRound } from '../../src/fleet/round.ts'
import { sling } from '../../src/fleet/sling/sling.ts'
import { fleetStatus } from '../../src/fleet/status.ts'
import { fleetUp } from '../../src/fleet/up.ts'
import { isProvablyDead } from '../../src/isolation/agents-inside.ts'
import { parentOf } from '../../src/process/identity-linux.ts'
import { identifySync, liveness } from '../../src/process/identity.ts'
import { assertHooksAgree } from '../helpers/fleet.ts'
import {
  agentNow,
  atWork,
  by,
  crash,
  did,
  killed,
  MINUTE,
  type Patrolled,
  patrolled,
  programOf,
  rootOf,
  round,
  twoRounds,
} from '../helpers/patrol.ts'
import { openCopiedStore } from '../helpers/store.ts'
import { runnableKinds, testInTmux } from '../helpers/tmux.ts'

/** Started by the agent, under a session of its own, and running after the agent has died. */
const leftBehind = async (world: Patrolled, name: string, script: string) => {
  await world.order(name, `setsid ${script} & echo "left $!"`)
  await expect.poll(() => world.printed(name)).toMatch(/left \d+/)
  const pid = Number(/left (\d+)/.exec(world.printed(name))?.[1])
  return identifySync(pid) ?? expect.unreachable('nothing was started')
}

describe('a crashed agent', () => {
  test.each(runnableKinds)('is started again in its own worktree: at once, then later and later (%s)', async (kind) => {
    await using world = await patrolled({ kind })
    const work = await atWork(world)
    writeFileSync(join(work.environment.path, 'half.txt'), 'half\n')
    expect(await round(world)).toEqual([])
    await crash(world, work.agent)
    expect(await round(world)).toEqual(['crashed: alder crashed', 'respawn: alder restarted'])
    const second = await agentNow(world, work)
    const same = { itemId: work.item, environmentId: work.environment.id }
    expect(second).toMatchObject({ state: 'working', restarts: 1, ...same })
    expect(second.spawn).not.toBe(work.agent.spawn)
    expect(liveness(rootOf(second))).toBe('alive')
    expect(await round(world)).toEqual([])
    await crash(world, second)
    expect(await round(world)).toEqual(['crashed: alder crashed'])
    expect((await fleetStatus(world.fleet)).needsYou).toEqual([])
    world.pass(9_000)
    expect(await round(world)).toEqual([])
    world.pass(2_000)
    expect(await round(world)).toEqual(['respawn: alder restarted'])
    await crash(world, await agentNow(world, work))
    await round(world)
    world.pass(5 * MINUTE)
    expect(await round(world)).toEqual(['respawn: alder restarted'])
    // The last time: its work stays where it is, and a person decides.
    await crash(world, await agentNow(world, work))
    expect(await round(world)).toEqual(['crashed: alder crashed', 'no-restarts-left: alder parked'])
    expect(await world.item(work.item)).toMatchObject({ state: 'parked', parked: { kind: 'crashed', restarts: 3 } })
    expect(await agentNow(world, work)).toMatchObject({ state: 'crashed', ...same })
    expect(existsSync(join(work.environment.path, 'half.txt'))).toBe(true)
    world.pass(60 * MINUTE)
    expect(await round(world)).toEqual([])
    expect((await fleetStatus(world.fleet)).needsYou).toMatchObject([{ kind: 'parked', agent: 'alder' }])
    const told = world.told.map((event) => event.kind)
    expect(told.filter((one) => one === 'crashed' || one === 'parked')).toEqual([...Array(4).fill('crashed'), 'parked'])
    // Whoever lets it continue lets it crash again, too.
    expect(await sling(world.fleet, { item: work.item, by })).toMatchObject({ outcome: 'started' })
    expect(await agentNow(world, work)).toMatchObject({ state: 'working', restarts: 0 })
    await assertHooksAgree(world)
  })

  test('isn’t started on another branch, with a parked item, or while the fleet is down', async () => {
    await using world = await patrolled()
    const [other, asks, third] = [await atWork(world), await atWork(world), await atWork(world)]
    world.box.raw(other.environment.path, 'switch', '-q', '-c', 'mine')
    await crash(world, other.agent)
    expect(await round(world)).toEqual(['crashed: alder crashed', 'respawn: alder parked'])
    const parked = { kind: 'other-branch', branch: other.environment.branch, head: 'mine' }
    expect(await world.item(other.item)).toMatchObject({ state: 'parked', parked })
    await parkByHand(world.fleet, asks.item, { note: 'Which API?', by })
    await crash(world, asks.agent)
    expect(await round(world)).toEqual(['crashed: beech crashed'])
    world.pass(60 * MINUTE)
    expect(await round(world)).toEqual([])
    await fleetDown(world.fleet, { by, graceMs: 0 })
    await world.context.store.fleetControl.set('this-host', { state: 'up', why: '', since: 0 })
    // `fleet down` of one agent is somebody's wish.
    expect(await round(world)).toEqual([])
    expect(await agentNow(world, third)).toMatchObject({ state: 'stopped', itemId: third.item })
    await assertHooksAgree(world)
  })

  test('that no longer starts is not tried for ever', async () => {
    await using world = await patrolled({ settings: { fleetRestarts: 2 } })
    const work = await atWork(world)
    await crash(world, work.agent)
    const broken = {
      ...world.fleet,
      isolation: { ...world.context, settings: { ...world.context.settings, pools: [] } },
    }
    for (let tries = 0; tries < 2; tries += 1) {
      expect((await runRound(broken)).patrol.problems).toMatchObject([{ agent: 'alder', row: 'respawn' }])
      world.pass(5 * MINUTE)
    }
    expect(did((await runRound(broken)).patrol.findings)).toEqual(['no-restarts-left: alder parked'])
    await assertHooksAgree(world)
  })

  test('without an item makes room; a crew member starts again', async () => {
    await using world = await patrolled({ pools: [{ min: 1 }] })
    expect((await runRound(world.fleet)).pools.started).toEqual(['alder'])
    await addCrew(world.fleet, { name: 'rust', codebases: [world.codebase], agent: undefined, by }).catch(
      () => undefined,
    )
    const [idle = expect.unreachable('nobody waits')] = await world.context.store.fleetAgents.live()
    await crash(world, idle)
    const { patrol, pools } = await runRound(world.fleet)
    expect(did(patrol.findings)).toEqual(['crashed: alder crashed', 'free-worktree: alder removed'])
    expect(pools.started).toEqual(['alder'])
    await assertHooksAgree(world)
  })

  test('isn’t started beside what it has left running, which ends first, confirmed twice', async () => {
    await using world = await patrolled()
    const work = await atWork(world)
    const left = await leftBehind(world, 'alder', 'sleep 300')
    await crash(world, work.agent, { leaves: 'processes' })
    expect(await twoRounds(world)).toEqual(['outlived-session: alder crashed', 'respawn: alder restarted'])
    expect(liveness(left)).toBe('dead')
  })

  test('isn’t taken for dead if only one of two signals says so, or none can be had', async () => {
    await using world = await patrolled()
    const work = await atWork(world)
    const kind = world.fleet.sessions.of('process')
    const listing = (list: typeof kind.list) => ({
      ...world,
      fleet: { ...world.fleet, sessions: { ...world.fleet.sessions, all: () => [{ ...kind, list }] } },
    })
    const gone = listing(async () => [])
    expect([await round(gone), await round(gone)]).toEqual([[], []])
    await crash(world, work.agent)
    const unlisted = listing(() => Promise.reject(new Error('not today')))
    const other = listing(async () => [
      { name: 'alder', target: 'alder', root: world.context.self, startedAt: 0, dead: false },
    ])
    for (const strange of [unlisted, other]) {
      expect(await round(strange)).toEqual([])
      world.pass(MINUTE)
      expect(await round(strange)).toEqual([])
    }
    expect(await agentNow(world, work)).toMatchObject({ state: 'working' })
    expect(await round(world)).toEqual(['crashed: alder crashed', 'respawn: alder restarted'])
  })
})

describe('several at once', () => {
  test('that die on their own pause the fleet, with one alert; `fleet up` resumes', async () => {
    await using world = await patrolled({ pools: [{ pull: true }] })
    const all = [await atWork(world), await atWork(world), await atWork(world)]
    const names = ['alder', 'beech', 'cedar']
    for (const { agent } of all) await crash(world, agent)
    const died = names.map((name) => `crashed: ${name} crashed`)
    expect((await round(world)).toSorted()).toEqual([...died, 'mass-death:  paused'])
    await world.addItem('Another one')
    const { patrol, pools } = await runRound(world.fleet)
    expect([patrol.findings, pools.started]).toEqual([[], []])
    expect(world.told.filter(({ kind }) => kind === 'mass-death')).toEqual([{ kind: 'mass-death', agents: names }])
    expect((await fleetStatus(world.fleet)).needsYou).toContainEqual(expect.objectContaining({ kind: 'paused' }))
    expect((await fleetUp(world.fleet, { by })).started.map(({ name }) => name).toSorted()).toEqual(names)
    expect(await round(world)).toEqual([])
    await assertHooksAgree(world)
  })

  test('fewer, or one after the other, are started again', async () => {
    await using world = await patrolled({ settings: { massDeathAgents: 2 } })
    const all = [await atWork(world), await atWork(world)]
    for (const { agent } of all) {
      await crash(world, agent)
      expect(await round(world)).toContainEqual(`respawn: ${agent.name} restarted`)
      world.pass(31_000)
    }
    expect((await world.context.store.fleetControl.get('this-host')).state).toBe('up')
  })

  testInTmux('whose tmux server was killed are all started again: that is one cause', async () => {
    await using world = await patrolled({ kind: 'tmux' })
    const all = [await atWork(world), await atWork(world), await atWork(world)]
    const server = identifySync(parentOf(rootOf(all[0]!.agent).pid) ?? 0) ?? expect.unreachable('no tmux server')
    await killed(server)
    for (const { agent } of all) await expect.poll(() => isProvablyDead(world.context, agent)).toBe(true)
    expect((await round(world)).filter((one) => one.includes('restarted'))).toHaveLength(3)
    for (const work of all) {
      expect(await agentNow(world, work)).toMatchObject({ state: 'working', environmentId: work.environment.id })
    }
    await assertHooksAgree(world)
  })
})

testInTmux(
  'one that survives the end of its tmux server is ended, and started again where people can reach it',
  async () => {
    const command = `exec sh ${resolve(import.meta.dirname, '../helpers/fleet-worker.sh')}`
    await using world = await patrolled({ kind: 'tmux', pools: [{ command }] })
    const work = await atWork(world)
    await world.order('alder', "trap '' HUP; echo deaf; while :; do sleep 1; done")
    await expect.poll(() => world.printed('alder')).toMatch(/^deaf/m)
    await killed(identifySync(parentOf(rootOf(work.agent).pid) ?? 0) ?? expect.unreachable('no tmux server'))
    // So young that its session may be on its way.
    expect(await twoRounds(world)).toEqual([])
    expect(liveness(rootOf(work.agent))).toBe('alive')
    world.pass(MINUTE)
    expect(await twoRounds(world)).toEqual(['outlived-session: alder crashed', 'respawn: alder restarted'])
    expect(liveness(rootOf(work.agent))).toBe('dead')
    expect(await agentNow(world, work)).toMatchObject({ state: 'working', environmentId: work.environment.id })
  },
)

test('a session whose program is dead is a zombie: confirmed twice, ended, and started again', async () => {
  await using world = await patrolled()
  const work = await atWork(world)
  const shell = rootOf(work.agent)
  process.kill(shell.pid, 'SIGSTOP')
  await killed(programOf(world, work.agent))
  expect(await twoRounds(world)).toEqual(['zombie: alder crashed', 'respawn: alder restarted'])
  expect(liveness(shell)).toBe('dead')
})

describe('a worktree', () => {
  test('that is missing parks the item, and never unhooks it, whether its agent lives or not', async () => {
    await using world = await patrolled()
    const [alive, dead] = [await atWork(world), await atWork(world)]
    for (const { environment } of [alive, dead]) renameSync(environment.path, `${environment.path}.away`)
    await crash(world, dead.agent)
    expect(await round(world)).toEqual(['crashed: beech crashed'])
    world.pass(1_000)
    const parked = ['worktree-missing: alder parked', 'worktree-missing: beech parked']
    expect((await round(world)).toSorted()).toEqual(parked)
    for (const work of [alive, dead]) {
      const reason = { kind: 'worktree-missing', path: work.environment.path }
      expect(await world.item(work.item)).toMatchObject({ state: 'parked', parked: reason })
      expect(await agentNow(world, work)).toMatchObject({ itemId: work.item })
      renameSync(`${work.environment.path}.away`, work.environment.path)
    }
    world.pass(MINUTE)
    expect(await round(world)).toEqual([])
    expect(await sling(world.fleet, { item: dead.item, by })).toMatchObject({ outcome: 'started' })
    await assertHooksAgree(world)
  })

  test('that is provably gone ends the session in it, and then opens the item again', async () => {
    await using world = await patrolled()
    const work = await atWork(world)
    const { environments } = world.context.store
    await environments.transition(work.environment.id, 'active', 'removing')
    await environments.transition(work.environment.id, 'removing', 'removed')
    expect(await twoRounds(world)).toEqual([])
    world.pass(MINUTE)
    expect(await twoRounds(world)).toEqual(['stray-session: alder ended'])
    expect(liveness(rootOf(work.agent))).toBe('dead')
    expect(await round(world)).toEqual(['orphaned-hook: alder unhooked'])
    expect(await world.item(work.item)).toMatchObject({ state: 'open', environmentId: undefined })
    expect(world.told.map(({ kind }) => kind)).toEqual(['started', 'stray-ended', 'reopened'])
    await assertHooksAgree(world)
  })

  test('whose item no agent has parks it, or opens it again if it is gone, too', async () => {
    await using world = await patrolled()
    const [kept, lost] = [await atWork(world), await atWork(world)]
    await fleetDown(world.fleet, { by, graceMs: 0 })
    const { store } = world.context
    for (const { agent } of [kept, lost]) await store.fleetAgents.move(agent.id, 'stopped', 'gone', { endedAt: 1 })
    await store.items.update(lost.item, { environmentId: undefined })
    expect((await round(world)).filter((one) => one.startsWith('hooked'))).toEqual([
      'hooked-by-nobody:  parked',
      'hooked-by-nobody:  unhooked',
    ])
    expect([(await world.item(kept.item)).state, (await world.item(lost.item)).state]).toEqual(['parked', 'open'])
  })
})

test('a session of an agent that is gone is ended; one of an agent that the database has forgotten is not', async () => {
  await using world = await patrolled()
  const work = await atWork(world)
  const { store } = world.context
  const fresh = await openCopiedStore(join(world.box.path('state'), 'lost.db'))
  const forgetful = { ...world, fleet: { ...world.fleet, isolation: { ...world.context, store: fresh } } }
  world.pass(2 * MINUTE)
  expect(await round(forgetful)).toEqual([])
  expect(liveness(rootOf(work.agent))).toBe('alive')
  await fresh.close()
  await store.fleetAgents.move(work.agent.id, 'working', 'gone', { endedAt: world.fleet.isolation.clock() })
  expect(await round(world)).toContain('stray-sessions: alder ended')
  expect(liveness(rootOf(work.agent))).toBe('dead')
})

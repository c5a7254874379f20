import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { appendFileSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { expect, test } from 'vitest'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import { asProgram } from '../../src/commands/views/view.ts'
import type { CliCall } from '../../src/cli/cli-call.ts'
import type { Action } from '../../src/cli/fleet-watch/state.ts'
import { type Actions, createActions, type Done } from '../../src/cli/fleet-watch/actions.ts'
import { sling } from '../../src/fleet/sling/sling.ts'
import { liveness, selfIdentity } from '../../src/process/identity.ts'
import { parkByHand } from '../../src/fleet/items/close.ts'
import { logFile } from '../../src/fleet/sessions/paths.ts'
import { fleetSnapshot, type FleetSnapshot, watchedTrees, type WatchRow } from '../../src/fleet/watch/snapshot.ts'
import { createTreeFacts, type TreeFactsCache } from '../../src/fleet/watch/tree-facts.ts'
import { processChannels } from '../../bench/process-channels.ts'
import { issue, inside } from '../isolation/scene.ts'
import { anAgent } from '../helpers/fleet-values.ts'
import { type FleetWorld, makeFleetWorld, workplaceOf } from '../helpers/fleet.ts'
import { hasTmux } from '../helpers/tmux.ts'

const processesOf = async (work: () => Promise<unknown>): Promise<number> => {
  let processes = 0
  const count = (): void => void (processes += 1)
  for (const name of processChannels) subscribe(name, count)
  try {
    await work()
  } finally {
    for (const name of processChannels) unsubscribe(name, count)
  }
  return processes
}

/** Agents with worktrees and items. Their sessions are this process. */
const agentsAtWork = async (world: FleetWorld, count: number): Promise<readonly IsolatedEnvironment[]> => {
  const { store, host } = world.context
  const environments: IsolatedEnvironment[] = []
  for (let i = 0; i < count; i += 1) {
    const environment = await issue(world, i + 1)
    environments.push(environment)
    const name = `agent-${String(i).padStart(2, '0')}`
    const { id } = await world.addItem(`Item of ${name}`)
    const session = { kind: 'process', target: name, root: selfIdentity(), startedAt: 0 } as const
    const change = { host, codebaseId: world.codebase.id, itemId: id, environmentId: environment.id, session }
    await store.fleetAgents.insert(anAgent(name, { ...change, state: 'working', lastSignAt: world.context.clock() }))
    const signed = { by: 'cli', at: 1 }
    await store.items.move(id, { from: 'open', to: 'hooked', change: { kind: 'recovered' }, ...signed })
  }
  return environments
}

const look = async (world: FleetWorld, facts: TreeFactsCache): Promise<FleetSnapshot> => {
  await facts.refresh(await watchedTrees(world.fleet, (await fleetSnapshot(world.fleet, facts)).rows))
  return fleetSnapshot(world.fleet, facts)
}

const rowAt = ({ rows }: FleetSnapshot, { id }: IsolatedEnvironment): WatchRow =>
  rows.find(({ environment }) => environment?.id === id) ?? expect.unreachable(`no row for ${id}`)

test('20 agents: one process per list, and git is asked once and again only where something changed', async () => {
  let now = Date.now()
  await using world = await makeFleetWorld({ context: { clock: () => now } })
  const [first, second, ...others] = await agentsAtWork(world, 20)
  if (first === undefined || second === undefined) throw new Error('no agents')
  const facts = createTreeFacts(world.context)
  const refresh = async (): Promise<number> => {
    const trees = await watchedTrees(world.fleet, (await fleetSnapshot(world.fleet, facts)).rows)
    return processesOf(() => facts.refresh(trees))
  }
  expect(await processesOf(() => fleetSnapshot(world.fleet, facts))).toBeLessThanOrEqual(hasTmux ? 1 : 0)
  // One look at the files of each, and a few questions about all branches together.
  expect(await refresh()).toBeLessThanOrEqual(20 + 4)
  expect(await refresh()).toBe(0)
  now += 15_000
  expect(await refresh()).toBe(0)

  // One agent commits, another edits and prints something.
  inside(world, first).commit('done.txt', 'done\n')
  inside(world, second).write('half.txt', 'half\n')
  const log = logFile(world.context.home, 'agent-01')
  mkdirSync(dirname(log), { recursive: true })
  writeFileSync(log, 'working on it\n')
  expect(await refresh()).toBeLessThanOrEqual(2 + 3)
  const snapshot = await fleetSnapshot(world.fleet, facts)
  expect(rowAt(snapshot, first).facts).toMatchObject({ dirty: { changed: 0, untracked: 0 }, ahead: 1 })
  expect(rowAt(snapshot, second).facts).toMatchObject({ dirty: { untracked: 1 }, ahead: 0 })
  for (const other of others) expect(rowAt(snapshot, other).facts).toMatchObject({ dirty: { untracked: 0 }, ahead: 0 })

  // While it goes on printing, git is asked at most every ten seconds; and at least once a minute about everything.
  appendFileSync(log, 'and on\n')
  now += 5_000
  expect(await refresh()).toBe(0)
  now += 60_000
  // No branch has moved, so its distance from the base is known.
  expect(await refresh()).toBe(20 + 1)
})

/** As the keys of `fleet watch` use them. */
const actionsIn = (world: FleetWorld): Actions => {
  const workplace = workplaceOf(world)
  const { box } = world
  const call: CliCall = {
    words: [],
    values: {},
    codebase: undefined,
    cwd: box.root,
    env: box.env,
    signal: new AbortController().signal,
    open: async () => workplace,
    notice: () => undefined,
    live: undefined,
    output: {
      isJson: false,
      view: { ...asProgram, now: 0 },
      write: () => undefined,
      closed: new AbortController().signal,
    },
    showSecret: undefined,
    serve: () => expect.unreachable(),
    ownEngine: () => expect.unreachable(),
  }
  return createActions(workplace, call, { ...asProgram, now: 0 })
}

const undoOf = ({ undo }: Done): Action => {
  if (undo === undefined) throw new Error('it cannot be undone')
  return undo.action
}

test('an action goes to the agent that was meant, never to the next one with its name', async () => {
  await using world = await makeFleetWorld()
  const { store, host } = world.context
  await agentsAtWork(world, 1)
  const old = { id: 'agent-agent-00', name: 'agent-00' }
  await store.fleetAgents.move(old.id, 'working', 'gone', { endedAt: 1, session: undefined })
  const { id } = await world.addItem('Of the next one')
  const slung = await sling(world.fleet, { item: id, by: 'cli' })
  if (slung.outcome !== 'started') throw new Error('not started')
  const { agent } = slung
  await store.fleetAgents.move(agent.id, 'working', 'gone', { endedAt: 1 })
  await store.fleetAgents.insert({ ...agent, id: 'next', name: old.name, spawn: 'next' })
  const actions = actionsIn(world)
  for (const kind of ['stop', 'start'] as const) {
    expect(await actions.perform({ kind, agent: old })).toEqual({
      message: { text: expect.stringContaining('another agent has its name now'), tone: 'bad' },
    })
  }
  expect((await actions.perform({ kind: 'nudge', agent: old, text: 'echo mine' })).message.tone).toBe('bad')
  expect(await actions.peek(old, 10)).toBeUndefined()
  expect(await store.fleetAgents.byName(host, old.name)).toMatchObject({ id: 'next', state: 'working' })
  expect(liveness(agent.session?.root ?? { pid: 0, startTime: '' })).toBe('alive')
})

test('what was done in the view can be undone: a stop by a start in the same worktree, a landing by its withdrawal', async () => {
  await using world = await makeFleetWorld({ remote: true })
  const { store } = world.context
  const actions = actionsIn(world)
  const { id } = await world.addItem('Fix login')
  const slung = await sling(world.fleet, { item: id, by: 'cli' })
  if (slung.outcome !== 'started') throw new Error('not started')
  const { agent, environment } = slung
  const stopped = await actions.perform({ kind: 'stop', agent })
  expect(stopped.message).toEqual({ text: 'Stopped alder. Its worktree and item are kept.', tone: 'good' })
  expect(await store.fleetAgents.get(agent.id)).toMatchObject({ state: 'stopped', itemId: id })
  expect((await actions.perform(undoOf(stopped))).message).toEqual({
    text: 'Started alder.',
    tone: 'good',
  })
  expect(await store.fleetAgents.get(agent.id)).toMatchObject({ state: 'working', environmentId: environment.id })
  expect(await actions.perform({ kind: 'land', item: id, agent })).toMatchObject({
    message: { text: expect.stringContaining("Can't land item 1"), tone: 'bad' },
  })

  const parked = await world.addItem('Parked')
  const tree = await issue(world, 60)
  inside(world, tree).commit('fix.txt', 'fixed\n')
  const signed = { by: 'cli', at: 1, change: { kind: 'recovered' } } as const
  await store.items.move(parked.id, { from: 'open', to: 'hooked', ...signed, patch: { environmentId: tree.id } })
  await parkByHand(world.fleet, parked.id, { note: 'really?', by: 'cli' })
  const queued = await actions.perform({ kind: 'land', item: parked.id, agent: undefined })
  expect(queued.message).toEqual({
    tone: 'good',
    text: `Queued: ${tree.branch} (item ${parked.id}) as landing 1. No server is running. To land it now: coppice land --run`,
  })
  expect((await store.items.get(parked.id))?.state).toBe('in_review')
  // Queued by somebody else, or before: not this view's to take back.
  expect((await actions.perform({ kind: 'land', item: parked.id, agent: undefined })).undo).toBeUndefined()
  const withdraw = undoOf(queued)
  expect((await actions.perform(withdraw)).message).toEqual({
    text: `Withdrew item ${parked.id} from the landing queue.`,
    tone: 'good',
  })
  expect(await store.landings.list({ itemId: parked.id, limit: 9 })).toMatchObject([{ state: 'superseded' }])
  expect(await store.items.get(parked.id)).toMatchObject({
    state: 'parked',
    parked: { kind: 'asked', note: 'really?' },
  })
  expect((await actions.perform(withdraw)).message).toMatchObject({
    tone: 'bad',
    text: expect.stringContaining("can't be withdrawn"),
  })
})

test('rows: agents, and items that wait for a person or a merge without one, what needs you first', async () => {
  await using world = await makeFleetWorld()
  const [alder] = await agentsAtWork(world, 1)
  const facts = createTreeFacts(world.context)
  const [parked, reviewed, open] = [
    await world.addItem('Which API?'),
    await world.addItem('Reviewed'),
    await world.addItem('Later'),
  ]
  const kept = await issue(world, 50)
  await parkByHand(world.fleet, parked.id, { note: 'v1 or v2?', by: 'cli' })
  const { store } = world.context
  const signed = { by: 'cli', at: 1, change: { kind: 'recovered' } } as const
  await store.items.move(reviewed.id, { from: 'open', to: 'hooked', ...signed })
  await store.items.move(reviewed.id, { from: 'hooked', to: 'in_review', ...signed, patch: { environmentId: kept.id } })
  inside(world, kept).commit('fix.txt', 'fixed\n')

  const { rows, items } = await look(world, facts)
  expect(items).toMatchObject({ parked: 1, in_review: 1, hooked: 1, open: 1 })
  expect(rows.map(({ item }) => item?.id)).not.toContain(open.id)
  expect(rows.map(({ key, needs }) => [key, needs.map(({ kind }) => kind)])).toEqual([
    // Its session isn't one of ours.
    ['agent-agent-00', ['no-session']],
    [`item ${parked.id}`, ['parked']],
    [`item ${reviewed.id}`, []],
  ])
  expect(rows[0]?.environment?.id).toBe(alder?.id)
  expect(rows[2]?.facts).toMatchObject({ ahead: 1 })
})

test('a worktree that cannot be looked at is unknown, not clean', async () => {
  await using world = await makeFleetWorld()
  const [alder] = await agentsAtWork(world, 1)
  if (alder === undefined) throw new Error('no agent')
  const broken = { ...world.context, git: { ...world.context.git, run: () => Promise.reject(new Error('git broke')) } }
  expect(rowAt(await look(world, createTreeFacts(broken)), alder).facts).toEqual(
    expect.objectContaining({ dirty: undefined, ahead: undefined }),
  )
  const facts = createTreeFacts(world.context)
  expect(rowAt(await look(world, facts), alder).facts).toMatchObject({ dirty: { untracked: 0 }, ahead: 0 })
  // Once it is gone, what was known no longer holds.
  renameSync(alder.path, `${alder.path}.away`)
  expect(rowAt(await look(world, facts), alder).facts).toMatchObject({ dirty: undefined, ahead: undefined })
})

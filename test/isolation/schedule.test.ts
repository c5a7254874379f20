import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, expect, test } from 'vitest'
import { createSchedule, type Cycle, type Schedule, type ScheduleOptions } from '../../src/cleanup/schedule.ts'
import type { Codebase } from '../../src/domain/environment.ts'
import { toCodebaseId } from '../../src/domain/names.ts'
import { createEnvironments } from '../../src/isolation/environments.ts'
import { discardDirectory } from '../../src/isolation/trash/trash.ts'
import { keepSpares } from '../../src/isolation/providers/worktree/spare.ts'
import { attachmentDirectory } from '../../src/runs/attachments/directory.ts'
import type { InboxMessage, Reply } from '../../src/store/store.ts'
import { built } from '../helpers/built.ts'
import { makeWorld, type World } from '../helpers/world.ts'
import type { ScheduleOrder } from './schedule-child.ts'
import { inside, issue } from './scene.ts'

const day = 24 * 60 * 60 * 1000

const scheduleOf = (world: World, more: Partial<ScheduleOptions> = {}): Schedule =>
  createSchedule({
    context: world.context,
    environments: async () => createEnvironments(world.context),
    intervalHours: 6,
    onReport: () => undefined,
    keepSpares: () => undefined,
    ...more,
  })

/** What is left of a cycle when the parts that vary are taken out. */
const summary = (cycle: Cycle) =>
  cycle.outcome === 'taken'
    ? 'taken'
    : { outcome: cycle.outcome, cleaned: cycle.cleaned.map(({ codebase }) => codebase), failed: cycle.failed }

/** Another registered repository; the names are in the order of the list. */
const another = async (world: World, name: string, patch: Partial<Codebase> = {}): Promise<Codebase> => {
  const repo = world.box.repo(name)
  const codebase = { ...world.codebase, id: toCodebaseId(`${name}-id`), name, ...patch }
  const there = { ...codebase, repoPath: repo.commonDir, checkoutPath: repo.path }
  await world.context.store.codebases.insert(there)
  return there
}

const landed = async (world: World, number: number): Promise<string> => {
  const environment = await issue(world, number)
  inside(world, environment).commit(`file-${number}`, 'content\n')
  world.repo.git('merge', '-q', '--no-ff', '-m', 'land', environment.branch)
  return environment.path
}

test('a cycle cleans every codebase, tells of each, and leaves its report behind', async () => {
  await using world = await makeWorld({ settings: { holdMergedHours: 0 } })
  await another(world, 'second')
  const path = await landed(world, 42)
  const told: string[] = []
  const cycle = await scheduleOf(world, {
    onReport: (codebase, { removed }) => void told.push(`${codebase.name} ${removed.length}`),
  }).runNow()
  expect(summary(cycle)).toEqual({ outcome: 'done', cleaned: ['project', 'second'], failed: [] })
  expect(told).toEqual(['project 1', 'second 0'])
  expect(existsSync(path)).toBe(false)
  expect(await world.context.store.events.recent({ kind: 'cleanup', limit: 10 })).toHaveLength(2)
})

test('restore points whose time is over go, and so does what lies in the trash', async () => {
  let now = Date.now()
  await using world = await makeWorld({
    settings: { holdMergedHours: 0, restoreDays: 1 },
    context: { clock: () => now },
  })
  await landed(world, 42)
  await scheduleOf(world).runNow()
  const { restorePoints } = world.context.store
  expect(await restorePoints.list(world.codebase.id)).toHaveLength(1)
  mkdirSync(world.box.path('trees/project/left'))
  const left = await discardDirectory(world.box.path('trees'), world.box.path('trees/project/left'), 'left')
  expect(existsSync(left)).toBe(true)
  now += 2 * day
  await scheduleOf(world).runNow()
  expect(await restorePoints.list(world.codebase.id)).toEqual([])
  expect(existsSync(left)).toBe(false)
})

test('what was done and said more than 30 days ago is forgotten, and nothing else', async () => {
  await using world = await makeWorld()
  const { store, clock } = world.context
  const at = { old: clock() - 31 * day, young: clock() - 29 * day }
  await store.inbox.accept([message('old', at.old), message('young', at.young), message('waiting', at.old)])
  for (const id of ['old', 'young']) await store.inbox.transition(id, 'waiting', 'done')
  await store.outbox.append([reply('old', at.old), reply('young', at.young), reply('waiting', at.old)])
  for (const id of ['old', 'young'] as const) await store.outbox.update(id, { state: 'sent', sentAt: at[id] })
  for (const id of ['old', 'young']) attachmentDirectory(world.context.home, id).complete({ files: [], notFetched: [] })
  const event = { kind: 'landed', codebaseId: undefined, codebase: undefined, itemId: 7, agent: undefined }
  const fields = { item: { id: 7, title: 'x' } }
  for (const id of ['old', 'young'] as const) await store.events.record({ ...event, fields, id, at: at[id] })
  expect(await scheduleOf(world).runNow()).toMatchObject({ forgotten: { messages: 1, replies: 1 } })
  expect((await store.events.page({ after: 0, limit: 9 })).map(({ number }) => number)).toEqual([2])
  expect(readdirSync(join(world.context.home, 'attachments')), 'files that came with them').toEqual(['young.json'])
  const known = async (get: (id: string) => Promise<unknown>): Promise<string[]> => {
    const found: string[] = []
    for (const id of ['old', 'young', 'waiting']) if ((await get(id)) !== undefined) found.push(id)
    return found
  }
  expect(await known((id) => store.inbox.get(id))).toEqual(['young', 'waiting'])
  expect(await known((id) => store.outbox.get(id))).toEqual(['young', 'waiting'])
})

const conversation = { platform: 'test', conversationId: 'thread' }

const message = (
  id: string,
  acceptedAt: number,
): Omit<InboxMessage, 'state' | 'attempts' | 'putBacks' | 'holder' | 'child'> => ({
  ...conversation,
  id,
  deliveryId: id,
  kind: 'message',
  text: id,
  details: {},
  lane: 'turn',
  acceptedAt,
})

const reply = (
  id: string,
  createdAt: number,
): Omit<Reply, 'state' | 'attempts' | 'sentParts' | 'sentAt' | 'error'> => ({
  ...conversation,
  id,
  inboxId: id,
  key: 'reply',
  role: 'agent',
  text: id,
  nextAttemptAt: createdAt,
  createdAt,
})

test('a codebase that fails, or whose report nobody can take, does not keep the others from it', async () => {
  await using world = await makeWorld()
  const broken = await another(world, 'alpha')
  await another(world, 'beta')
  await another(world, 'gamma')
  renameSync(broken.checkoutPath ?? '', world.box.path('unplugged'))
  const cycle = await scheduleOf(world, {
    onReport: ({ name }) => {
      if (name === 'beta') throw new Error('nobody listens')
    },
  }).runNow()
  expect(summary(cycle)).toEqual({
    outcome: 'done',
    cleaned: ['beta', 'gamma', 'project'],
    failed: [
      { codebase: 'alpha', error: expect.any(String) },
      { codebase: 'beta', error: 'nobody listens' },
    ],
  })
})

/** Timers that fire when the test says so. */
const handTimers = () => {
  const set: { afterMs: number; callback: () => void }[] = []
  const setTimer: ScheduleOptions['setTimer'] = (callback, afterMs) => {
    const timer = { afterMs, callback }
    set.push(timer)
    return () => void set.splice(set.indexOf(timer), 1)
  }
  return { set, setTimer }
}

test('it begins at the start and goes on every interval, with one timer and nothing else in between', async () => {
  await using world = await makeWorld()
  const { set, setTimer } = handTimers()
  let cycles = 0
  const schedule = scheduleOf(world, { setTimer, onReport: () => void (cycles += 1) })
  schedule.start()
  for (let n = 1; n <= 3; n += 1) {
    while (set.length === 0) await new Promise(setImmediate)
    expect({ cycles, timers: set.map(({ afterMs }) => afterMs) }).toEqual({ cycles: n, timers: [6 * 60 * 60 * 1000] })
    const spawned = world.context.git.spawned()
    await new Promise(setImmediate)
    expect(world.context.git.spawned()).toBe(spawned)
    set.shift()?.callback()
  }
  await schedule.stop()
  expect({ left: set, after: summary(await schedule.runNow()) }).toEqual({
    left: [],
    after: { outcome: 'stopped', cleaned: [], failed: [] },
  })
})

test('a cycle that fails altogether is tried again at the next interval', async () => {
  await using world = await makeWorld()
  const { set, setTimer } = handTimers()
  const list = async (): Promise<never> => {
    throw new Error('the store is gone')
  }
  const store = { ...world.context.store, codebases: { ...world.context.store.codebases, list } }
  const schedule = scheduleOf(world, { setTimer, context: { ...world.context, store } })
  schedule.start()
  while (set.length === 0) await new Promise(setImmediate)
  await expect(schedule.runNow()).rejects.toThrow('the store is gone')
  await schedule.stop()
  expect(set).toEqual([])
  // the store may be closed by now, so nobody asks it
  expect(await schedule.runNow()).toMatchObject({ outcome: 'stopped' })
})

test('stopping waits for the codebase it is at and begins no other', async () => {
  await using world = await makeWorld()
  await another(world, 'second')
  const reached = Promise.withResolvers<void>()
  const release = Promise.withResolvers<void>()
  const steps: string[] = []
  const schedule = scheduleOf(world, {
    onReport: async ({ name }) => {
      reached.resolve()
      await release.promise
      steps.push(name)
    },
  })
  const cycle = schedule.runNow()
  // who asks meanwhile gets the same one
  expect(schedule.runNow()).toBe(cycle)
  await reached.promise
  const stopped = schedule.stop().then(() => steps.push('stopped'))
  release.resolve()
  await stopped
  expect(steps).toEqual(['project', 'stopped'])
  expect(summary(await cycle)).toEqual({ outcome: 'stopped', cleaned: ['project'], failed: [] })
})

test('spares are wanted where somebody works and one is missing', async () => {
  await using world = await makeWorld({ settings: { spares: 1 } })
  await another(world, 'idle', { createdAt: 0 })
  const talked = await another(world, 'talked-to', { createdAt: 0 })
  await world.context.store.conversations.ensure({
    ...conversation,
    id: 'c',
    codebaseId: talked.id,
    environmentId: undefined,
    persistent: false,
    agent: undefined,
    lastActivityAt: world.context.clock() - day,
    closedAt: undefined,
    createdAt: 0,
  })
  const worked = await another(world, 'worked-in', { createdAt: 0 })
  await issue({ ...world, codebase: worked }, 7)
  const wanted = async (spares: number): Promise<string[]> => {
    const asked: string[] = []
    const context = { ...world.context, settings: { ...world.context.settings, spares } }
    await scheduleOf(world, { context, keepSpares: (id) => void asked.push(id) }).runNow()
    return asked
  }
  expect(await wanted(1)).toEqual(['project-id', 'talked-to-id', 'worked-in-id'])
  expect(await wanted(0)).toEqual([])
  await keepSpares(world.context, talked)
  expect(await wanted(1)).toEqual(['project-id', 'worked-in-id'])
})

const running = new Set<ChildProcessWithoutNullStreams>()
afterEach(async () => {
  for (const child of running) {
    const ended = once(child, 'exit')
    if (child.exitCode === null && child.signalCode === null && child.kill('SIGKILL')) await ended
  }
  running.clear()
})

const process2 = (world: World, task: ScheduleOrder['task']) => {
  const script = built('test/isolation/schedule-child.ts')
  const order: ScheduleOrder = { root: world.box.root, task }
  const child = spawn(process.execPath, [script, JSON.stringify(order)], { env: world.box.env })
  running.add(child)
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const heard: string[] = []
  child.stderr.on('data', (chunk: Buffer) => heard.push(chunk.toString()))
  const line = async (): Promise<string> => (await lines.next()).value ?? heard.join('')
  return { child, line, exited: once(child, 'exit') }
}

test('one cycle at a time across processes: who finds it taken leaves the round to the other', async () => {
  await using world = await makeWorld()
  const other = process2(world, 'hold')
  expect(await other.line()).toBe('holding')
  expect(summary(await scheduleOf(world).runNow())).toBe('taken')
  other.child.stdin.write('go\n')
  expect(await other.line()).toBe('done')
  await other.exited
  expect(summary(await scheduleOf(world).runNow())).toMatchObject({ outcome: 'done' })
  expect(readdirSync(join(world.context.home, 'locks'))).toEqual(['cleanup'])
})

test('a process that is killed in its cycle holds up nobody', async () => {
  await using world = await makeWorld()
  const other = process2(world, 'hold')
  expect(await other.line()).toBe('holding')
  other.child.kill('SIGKILL')
  await other.exited
  expect(summary(await scheduleOf(world).runNow())).toMatchObject({ outcome: 'done' })
})

test('the timer alone keeps no process alive', async () => {
  await using world = await makeWorld()
  const other = process2(world, 'start')
  expect(await other.line()).toBe('done')
  expect(await other.exited).toEqual([0, null])
})

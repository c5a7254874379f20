import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import type { SessionKind } from '../../src/domain/fleet/agent.ts'
import { needRemedies } from '../../src/commands/views/agents.ts'
import { closedText } from '../../src/commands/fleet/item-change.ts'
import { asProgram } from '../../src/commands/views/view.ts'
import { itemDetails } from '../../src/fleet/items/details.ts'
import { closeItem, parkByHand } from '../../src/fleet/items/close.ts'
import { fleetDown } from '../../src/fleet/down.ts'
import { agentDirectory, logFile } from '../../src/fleet/sessions/paths.ts'
import { sling } from '../../src/fleet/sling/sling.ts'
import { nudgeAgent, peekAt } from '../../src/fleet/peek-and-nudge.ts'
import { fleetStatus } from '../../src/fleet/status.ts'
import { fleetUp } from '../../src/fleet/up.ts'
import { assertHooksAgree, makeFleetWorld } from '../helpers/fleet.ts'
import { runnableKinds } from '../helpers/tmux.ts'

const by = 'cli'
const files = ['started', 'ended', 'environment', 'input', 'output', 'root']

const putDirectory = (path: string): unknown => mkdirSync(join(path, 'x'), { recursive: true })
const putFifo = (path: string): unknown => execFileSync('mkfifo', [path])

test.each([
  ['process', 'a directory', putDirectory],
  [runnableKinds[0], 'a FIFO', putFifo],
] as const)(
  'what an agent puts in the place of its files stops neither the fleet nor its own next life (%s, %s)',
  async (kind: SessionKind, _what, put) => {
    await using world = await makeFleetWorld({ kind })
    const [first, second] = [await world.addItem('Fix login'), await world.addItem('Write docs')]
    expect(await sling(world.fleet, { item: first.id, by })).toMatchObject({ outcome: 'started' })
    const directory = agentDirectory(world.context.home, 'alder')
    for (const name of files) {
      rmSync(join(directory, name), { force: true })
      put(join(directory, name))
    }
    expect(await sling(world.fleet, { item: second.id, by })).toMatchObject({ outcome: 'started' })
    const status = await fleetStatus(world.fleet)
    expect(status.agents.map(({ agent }) => agent.name)).toEqual(['alder', 'beech'])
    // Unknown isn't ended.
    expect(status.needsYou).toEqual([])
    expect(await fleetDown(world.fleet, { by, graceMs: 0 })).toMatchObject({ problems: [] })
    for (const name of files) {
      rmSync(join(directory, name), { recursive: true, force: true })
      put(join(directory, name))
    }
    const up = await fleetUp(world.fleet, { by })
    expect(up).toMatchObject({ problems: [], started: [{ name: 'alder' }, { name: 'beech' }] })
    writeFileSync(join(directory, 'root'), 'nonsense\n')
    expect((await fleetStatus(world.fleet)).needsYou).toEqual([])
    await assertHooksAgree(world)
  },
)

test('only what is a name is looked for among the logs', async () => {
  await using world = await makeFleetWorld({ fleet: { redact: (text) => text.replaceAll('secret', '***') } })
  const { home } = world.context
  mkdirSync(dirname(logFile(home, 'alder')), { recursive: true })
  writeFileSync(logFile(home, 'alder'), 'of an earlier secret agent\n')
  writeFileSync(join(home, 'server.log'), 'not of an agent\n')
  expect(await peekAt(world.fleet, 'alder', 5)).toBe('of an earlier *** agent')
  for (const name of ['../../server', '../logs/alder', '.', '', 'ALDER']) {
    await expect(peekAt(world.fleet, name, 5)).rejects.toMatchObject({ code: 'not-found' })
  }
  await expect(nudgeAgent(world.fleet, 'alder', 'hello')).rejects.toMatchObject({
    message: 'alder has finished and is gone',
  })
  await expect(nudgeAgent(world.fleet, 'beech', 'hello')).rejects.toMatchObject({ message: 'unknown agent "beech"' })
})

test.each(runnableKinds)('in %s, one whose program has ended is not sent anything', async (kind) => {
  await using world = await makeFleetWorld({ kind })
  const { id } = await world.addItem('Fix login')
  await sling(world.fleet, { item: id, by })
  await world.order('alder', 'crash')
  await expect
    .poll(async () => (await fleetStatus(world.fleet)).needsYou)
    .toEqual([{ kind: 'no-session', item: id, agent: 'alder' }])
  await expect(nudgeAgent(world.fleet, 'alder', 'hello')).rejects.toMatchObject({
    code: 'refused',
    message: "alder isn't running",
    remedy: expect.arrayContaining([{ of: 'coppice', command: 'fleet up alder' }]),
  })
})

test('a question is answered by a message if its agent runs, and after a start if it does not', async () => {
  await using world = await makeFleetWorld()
  const { id } = await world.addItem('Fix login')
  await sling(world.fleet, { item: id, by })
  await parkByHand(world.fleet, id, { note: 'Which API?', by })
  const commands = async (): Promise<readonly string[]> =>
    (await fleetStatus(world.fleet)).needsYou
      .flatMap((need) => needRemedies(need).flat())
      .flatMap((part) => (typeof part === 'object' ? [part.command] : []))
  expect(await commands()).toEqual(['nudge alder <text>', `sling ${id}`])
  await fleetDown(world.fleet, { by, only: ['alder'], graceMs: 0 })
  expect(await commands()).toEqual([`sling ${id}`, 'nudge alder <text>'])
  const again = await sling(world.fleet, { item: id, by })
  if (again.outcome !== 'started') throw new Error(`not started: ${again.outcome}`)
  await nudgeAgent(world.fleet, 'alder', 'the new one')
  // Closed by hand, its worktree goes, and its commits stay.
  const { path } = again.environment
  writeFileSync(join(path, 'login.txt'), 'half\n')
  world.box.raw(path, 'add', 'login.txt')
  world.box.raw(path, 'commit', '-qm', 'half')
  await fleetDown(world.fleet, { by, only: ['alder'], graceMs: 0 })
  const closed = await closeItem(world.fleet, id, by)
  const [seen] = await itemDetails(world.fleet, [closed.item])
  const text = seen && closedText({ ...closed, seen }, { ...asProgram, now: 0 })
  expect(text).toMatch(/^Closed item 1: .*\n {2}removed worktree .*\n {2}branch kept: 1 commit not on main$/)
})

test('a session that `done` ends needs nobody, unless whoever was to end it is dead', async () => {
  await using world = await makeFleetWorld()
  const { store, self, host, clock } = world.context
  const slung = await sling(world.fleet, { item: (await world.addItem('Fix login')).id, by })
  if (slung.outcome !== 'started') throw new Error(`not started: ${slung.outcome}`)
  const { agent } = slung
  await world.order('alder', 'crash')
  const needs = async (): Promise<readonly string[]> =>
    (await fleetStatus(world.fleet)).needsYou.map(({ kind }) => kind)
  await expect.poll(needs).toEqual(['no-session'])
  await store.fleetAgents.move(agent.id, 'working', 'finishing')
  const run = {
    id: 'a-run',
    agentId: agent.id,
    itemId: agent.itemId,
    formula: 'push',
    steps: [],
    state: 'running',
    branch: '',
    sha: undefined,
    pullRequest: undefined,
    close: false,
    holder: undefined,
    waiter: undefined,
    createdAt: clock(),
    updatedAt: clock(),
  } as const
  await store.formulaRuns.insert(run)
  expect(await needs()).toEqual([])
  await store.formulaRuns.update(run.id, {}, clock() - 120_000)
  expect(await needs()).toEqual(['no-session'])
  await store.formulaRuns.update(run.id, { holder: { host, process: self } }, clock() - 120_000)
  expect(await needs()).toEqual([])
  // Nor is it restarted while somebody finishes or stops it.
  const why = { kind: 'hooked', agent: 'alder' }
  expect(await sling(world.fleet, { item: slung.item.id, by })).toMatchObject({ why })
  await store.fleetAgents.move(agent.id, 'finishing', 'working')
  await store.fleetAgents.move(agent.id, 'working', 'draining', { holder: self })
  expect(await sling(world.fleet, { item: slung.item.id, by })).toMatchObject({ why })
})

test('a log that is no file is named, with what to do', async () => {
  await using world = await makeFleetWorld({ fleet: { redact: (text) => text.replaceAll('ready', '***') } })
  const item = await world.addItem('Fix login')
  const log = logFile(world.context.home, 'alder')
  mkdirSync(dirname(log), { recursive: true })
  execFileSync('mkfifo', [log])
  const problem = { code: 'unusable-file', remedy: expect.stringContaining(`remove ${log}`) as string }
  await expect(sling(world.fleet, { item: item.id, by })).rejects.toMatchObject(problem)
  rmSync(log)
  mkdirSync(log)
  await expect(sling(world.fleet, { item: item.id, by })).rejects.toMatchObject(problem)
  await assertHooksAgree(world)
  rmSync(log, { recursive: true })
  expect(await sling(world.fleet, { item: item.id, by })).toMatchObject({ outcome: 'started' })
  await expect.poll(() => peekAt(world.fleet, 'alder', 5)).toBe(`*** alder ${item.id}`)
})

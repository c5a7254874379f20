import { mkdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { addCrew } from '../../src/fleet/crew.ts'
import { parkByHand, reopenItem } from '../../src/fleet/items/close.ts'
import { supervisorText } from '../../src/fleet/patrol/supervisor.ts'
import { logFile } from '../../src/fleet/sessions/paths.ts'
import { fleetStatus } from '../../src/fleet/status.ts'
import { newestChange } from '../../src/process/files/newest-change.ts'
import { processTable } from '../../src/process/table.ts'
import { collectTree } from '../../src/process/tree.ts'
import { scripted } from '../crash/fleet-operations.ts'
import { assertHooksAgree } from '../helpers/fleet.ts'
import { agentNow, atWork, by, crash, MINUTE, type Patrolled, patrolled, round } from '../helpers/patrol.ts'

/** A time of the file system, as the test's clock has it. */
const touch = ({ clock }: Patrolled, file: string): void => utimesSync(file, clock() / 1000, clock() / 1000)
const log = ({ context }: Patrolled, name = 'alder') => logFile(context.home, name)

/** Nothing is known about CPU time before the first of two looks. */
const quiet = async (world: Patrolled, ms: number): Promise<string[]> => {
  world.pass(ms)
  const first = await round(world)
  world.pass(30_000)
  return [...first, ...(await round(world))]
}

const busy = `sh -c 'echo "busy $$"; while :; do :; done'`

describe('an agent without a sign of life', () => {
  test('is asked once, then a person is told once; a sign of life revives it', async () => {
    await using world = await patrolled()
    const work = await atWork(world)
    expect(await quiet(world, 28 * MINUTE)).toEqual([])
    world.pass(2 * MINUTE)
    expect(await round(world)).toEqual(['stuck: alder nudged'])
    await expect.poll(() => world.printed('alder')).toContain("told: You haven't done anything for a while.")
    // What it prints of that message is no sign of life.
    touch(world, log(world))
    expect(await quiet(world, 8 * MINUTE)).toEqual([])
    expect(await quiet(world, 2 * MINUTE)).toEqual(['stuck: alder stuck'])
    expect(await agentNow(world, work)).toMatchObject({ state: 'stuck', itemId: work.item })
    expect((await fleetStatus(world.fleet)).needsYou).toMatchObject([
      { kind: 'stuck', agent: 'alder', item: work.item },
    ])
    expect(await quiet(world, 60 * MINUTE)).toEqual([])
    expect(world.told.map(({ kind }) => kind)).toEqual(['started', 'stuck'])
    touch(world, log(world))
    expect(await round(world)).toEqual(['revived: alder revived'])
    expect(await agentNow(world, work)).toMatchObject({
      state: 'working',
      lastSignAt: expect.closeTo(world.clock(), -4),
    })
    await assertHooksAgree(world)
  })

  test('isn’t asked while its item is parked', async () => {
    await using world = await patrolled()
    const work = await atWork(world)
    await parkByHand(world.fleet, work.item, { note: 'Which API?', by })
    expect(await quiet(world, 60 * MINUTE)).toEqual([])
  })

  test.each([
    ['prints something', async (world: Patrolled) => touch(world, log(world))],
    [
      'changes a file deep in its worktree, in place',
      async (world: Patrolled, directory: string) => {
        mkdirSync(join(directory, 'deep/er'), { recursive: true })
        writeFileSync(join(directory, 'deep/er/file'), '')
        touch(world, join(directory, 'deep/er/file'))
      },
    ],
  ])('isn’t meant if it %s', async (_, act) => {
    await using world = await patrolled()
    const work = await atWork(world)
    world.pass(20 * MINUTE)
    await act(world, work.environment.path)
    expect(await quiet(world, 20 * MINUTE)).toEqual([])
    expect(await quiet(world, 10 * MINUTE)).toEqual(['stuck: alder nudged'])
  })

  test.each([
    ['a child of its program', `${busy} &`],
    ['a child that has left its process group, session and parent', `setsid -f ${busy}`],
  ])('a heartbeat taken for death during a ten-minute tool call: CPU time of %s counts', async (_, command) => {
    await using world = await patrolled()
    const work = await atWork(world)
    const before = new Set((await processTable()).map(({ identity }) => identity.pid))
    await world.order('alder', command)
    await expect.poll(() => world.printed('alder')).toMatch(/^busy \d+/m)
    const pid = Number(/^busy (\d+)/m.exec(world.printed('alder'))?.[1])
    expect(before.has(pid)).toBe(false)
    const used = async () => {
      const rows = await processTable()
      const [child] = rows.filter(({ identity }) => identity.pid === pid)
      const tree = child === undefined ? [] : collectTree(rows, [child.identity])
      return rows
        .filter(({ identity }) => tree.some((one) => one.pid === identity.pid))
        .reduce((sum, row) => sum + (row.cpuTicks ?? 0), 0)
    }
    world.pass(2 * MINUTE)
    expect(await round(world)).toEqual([])
    for (let looks = 0; looks < 3; looks += 1) {
      const enough = (await used()) + 10
      await expect.poll(used).toBeGreaterThan(enough)
      world.pass(31 * MINUTE)
      expect(await round(world)).toEqual([])
    }
    expect(await agentNow(world, work)).toMatchObject({ state: 'working' })
  })
})

describe('the supervisor', () => {
  const supervised = () =>
    patrolled({
      agents: [scripted(resolve(import.meta.dirname, '../helpers/fleet-worker.sh'))],
      fleet: { installation: ['sh', resolve(import.meta.dirname, '../helpers/fleet-worker.sh')] },
      settings: { supervisor: 'lead', fleetRestarts: 0 },
    })
  const withLead = async (world: Patrolled) => {
    const added = await addCrew(world.fleet, { name: 'lead', codebases: [world.codebase], agent: 'scripted', by })
    if ('report' in added) throw new Error('no room')
    await expect.poll(() => world.printed('lead')).toContain('ready')
    return added.agent
  }

  test('is told first, what was found and what it may do; a person only if it does nothing about it', async () => {
    await using world = await supervised()
    await withLead(world)
    const work = await atWork(world)
    await crash(world, work.agent)
    expect(await round(world)).toEqual(['crashed: alder crashed', 'no-restarts-left: alder told'])
    await expect.poll(() => world.printed('lead')).toContain('told: Patrol: alder, who worked on item 1, has crashed')
    expect(world.printed('lead')).toContain('coppice item reopen 1')
    expect(await world.item(work.item)).toMatchObject({ state: 'hooked' })
    expect((await fleetStatus(world.fleet)).needsYou).toEqual([])
    world.pass(9 * MINUTE)
    expect(await round(world)).toEqual([])
    world.pass(MINUTE)
    expect(await round(world)).toEqual(['no-restarts-left: alder parked'])
    expect(world.told.map(({ kind }) => kind)).toEqual(['started', 'crashed', 'parked'])
    await assertHooksAgree(world)
  })

  test('can take a clean dead agent off its item, and then nobody else is told', async () => {
    await using world = await supervised()
    await withLead(world)
    const [clean, dirty] = [await atWork(world), await atWork(world)]
    writeFileSync(join(dirty.environment.path, 'half.txt'), 'half\n')
    await expect(reopenItem(world.fleet, clean.item, 'agent:lead')).rejects.toThrow('only a parked item')
    for (const { agent } of [clean, dirty]) await crash(world, agent)
    await round(world)
    expect(await reopenItem(world.fleet, clean.item, 'agent:lead')).toMatchObject({ state: 'open' })
    await expect(reopenItem(world.fleet, dirty.item, 'agent:lead')).rejects.toThrow('worktree has changes')
    world.pass(20 * MINUTE)
    expect(await round(world)).toEqual(['no-restarts-left: beech parked'])
    await expect(reopenItem(world.fleet, dirty.item, 'agent:lead')).rejects.toThrow('worktree has changes')
    await assertHooksAgree(world)
  })

  test('whose session is dead, or who is in trouble itself, keeps nothing from a person', async () => {
    await using world = await supervised()
    const lead = await withLead(world)
    const work = await atWork(world)
    await crash(world, lead)
    await crash(world, work.agent)
    expect(await round(world)).toContain('no-restarts-left: alder parked')
    await assertHooksAgree(world)
  })

  test('gets only commands that it may use, and no text of others', () => {
    const problem = { kind: 'stuck', since: 0 } as const
    const text = supervisorText({ name: 'alder', itemId: 7 }, problem, { now: 31 * MINUTE, minutes: 10 })
    const commands = [...text.matchAll(/coppice (?:item )?\w+/g)].map(([command]) => command)
    expect(commands).toEqual(['coppice nudge', 'coppice item park', 'coppice item reopen', 'coppice land'])
    expect(text).toContain('no sign of life for 31 minutes')
  })
})

test('the newest change in a tree is found wherever it is, and is unknown if there is too much to look at', async () => {
  await using world = await patrolled()
  const directory = world.box.path('tree')
  mkdirSync(join(directory, '.git'), { recursive: true })
  mkdirSync(join(directory, 'a'))
  for (const file of ['.git/index', 'a/b', 'c']) writeFileSync(join(directory, file), '')
  const later = world.clock() + 5_000
  for (const file of ['.git/index', 'a/b']) utimesSync(join(directory, file), later / 1000, later / 1000)
  expect(await newestChange(directory, { now: later + 1 })).toBeCloseTo(later, -1)
  // A time in the future says nothing.
  expect(await newestChange(directory, { now: later - 1_000 })).toBeLessThan(later - 1_000)
  expect(await newestChange(directory, { now: later, most: 2 })).toBeUndefined()
  expect(await newestChange(join(directory, 'missing'), { now: later })).toBeUndefined()
})

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { ItemState } from '../../src/domain/fleet/item.ts'
import { closeItem, parkByHand, reopenItem } from '../../src/fleet/items/close.ts'
import { type BeadsSync, syncBeads } from '../../src/fleet/items/beads/sync.ts'
import { sling } from '../../src/fleet/sling/sling.ts'
import { anIssue, type Bd, type BdIssue, blocks, installBd } from '../helpers/bd/bd.ts'
import { type FleetWorld, makeFleetWorld } from '../helpers/fleet.ts'

/* Against a double of `bd` that is a program with a store of its own. */

type Scene = {
  readonly world: FleetWorld
  readonly bd: Bd
  readonly sync: (change?: { dryRun?: boolean; signal?: AbortSignal }) => Promise<BeadsSync>
  /** Of all items, and of their issues. */
  readonly states: () => Promise<Record<string, [here: ItemState, there: string]>>
  [Symbol.asyncDispose](): Promise<void>
}

const makeScene = async (...issues: readonly BdIssue[]): Promise<Scene> => {
  const made = await makeFleetWorld()
  const bd = installBd(made.repo.path, made.box.path('bin'), issues)
  const { programEnvironment } = made.context
  const path = `${bd.bin}:${programEnvironment['PATH'] ?? ''}`
  const isolation = { ...made.context, programEnvironment: { ...programEnvironment, PATH: path } }
  const world = { ...made, context: isolation, fleet: { ...made.fleet, isolation } }
  const words = { closed: 'Done', parked: ({ id }: { readonly id: number }) => `Parked as item ${id}` }
  return {
    world,
    bd,
    sync: ({ dryRun = false, signal } = {}) =>
      syncBeads(world.fleet, { codebase: world.codebase, by: 'cli', dryRun, signal, words }),
    states: async () =>
      Object.fromEntries(
        (await isolation.store.items.list({})).map(({ state, source }) => {
          const id = source?.kind === 'beads' ? source.id : ''
          return [id, [state, bd.read().issues.find((one) => one.id === id)?.status ?? 'gone']]
        }),
      ),
    [Symbol.asyncDispose]: () => made[Symbol.asyncDispose](),
  }
}

const nothing = { pulled: [], pushed: [], left: [], refused: [] }

const verbs = (bd: Bd): string[] => bd.read().calls.map(({ args }) => args.join(' '))

test('new issues become items; both sides agree from then on', async () => {
  await using scene = await makeScene(
    anIssue('bd-2', blocks('bd-1')),
    anIssue('bd-1', { status: 'in_progress' }),
    anIssue('bd-3', { status: 'closed' }),
  )
  const { sync, states, bd, world } = scene
  expect((await sync()).imported.added.map(({ title }) => title)).toEqual(['Title of bd-1', 'Title of bd-2'])
  expect(await states()).toEqual({ 'bd-1': ['parked', 'in_progress'], 'bd-2': ['open', 'open'] })
  expect(await sync()).toMatchObject({ ...nothing, imported: { added: [], updated: [] } })
  expect(verbs(bd)).toEqual(['export --readonly', 'export --readonly'])
  expect(await world.context.store.items.history(2)).toMatchObject([
    { by: 'cli', change: { kind: 'imported', from: 'beads' } },
  ])
})

test('bd runs in the checkout, with no variables of ours but what programs get', async () => {
  await using scene = await makeScene()
  await scene.sync()
  const [{ cwd, env } = { cwd: '', env: [] }] = scene.bd.read().calls
  expect(cwd).toBe(scene.world.repo.path)
  const own = Object.keys(scene.world.context.programEnvironment)
  // The shell adds these.
  expect(env.filter((name) => !['PWD', 'SHLVL', '_', 'OLDPWD', ...own].includes(name))).toEqual(['BEADS_NO_DAEMON'])
  expect(scene.world.repo.git('status', '--porcelain')).toBe('?? .beads/')
})

describe('what happens here is told to beads:', () => {
  test('work, a question, an answer, the end', async () => {
    await using scene = await makeScene(anIssue('bd-1'), anIssue('bd-2'))
    const { sync, states, bd, world } = scene
    await sync()
    const slung = await sling(world.fleet, { item: 1, by: 'cli' })
    expect(slung.outcome).toBe('started')
    expect((await sync()).pushed.map(({ item, to }) => [item.id, to])).toEqual([[1, 'in_progress']])
    await parkByHand(world.fleet, 1, { note: 'which one?', by: 'cli' })
    await parkByHand(world.fleet, 2, { note: undefined, by: 'cli' })
    await sync()
    expect(await states()).toEqual({ 'bd-1': ['parked', 'blocked'], 'bd-2': ['parked', 'blocked'] })
    expect(bd.issue('bd-1').comments).toEqual([{ author: 'coppice', text: 'Parked as item 1' }])
    expect(await sync()).toMatchObject(nothing)
    await reopenItem(world.fleet, 2, 'cli')
    await sync()
    expect(await states()).toMatchObject({ 'bd-2': ['open', 'open'] })
    await closeItem(world.fleet, 2, 'cli')
    await sync()
    expect(bd.issue('bd-2')).toMatchObject({ status: 'closed', close_reason: 'Done' })
    expect(verbs(bd).filter((call) => !call.startsWith('export'))).toEqual([
      'update bd-1 --status in_progress --actor coppice --json',
      'update bd-1 bd-2 --status blocked --actor coppice --json',
      'comments add bd-1 Parked as item 1 --actor coppice --json',
      'comments add bd-2 Parked as item 2 --actor coppice --json',
      'update bd-2 --status open --actor coppice --json',
      'close bd-2 --reason Done --actor coppice --json',
    ])
  })

  test.each([false, true])('what others wait for is closed first; answers may be wrapped (%s)', async (envelope) => {
    await using scene = await makeScene(
      anIssue('bd-1', blocks('bd-2')),
      anIssue('bd-2', blocks('bd-3')),
      anIssue('bd-3'),
    )
    const { sync, states, bd, world } = scene
    bd.write({ envelope })
    await sync()
    // The first item waits for the last one from now on.
    bd.set('bd-3', blocks('bd-4'))
    bd.write({ issues: [...bd.read().issues, anIssue('bd-4')] })
    await sync()
    for (const id of [1, 2, 3, 4]) await closeItem(world.fleet, id, 'cli')
    expect(await sync()).toMatchObject({ pushed: { length: 4 }, refused: [] })
    expect(Object.values(await states())).toEqual([
      ['closed', 'closed'],
      ['closed', 'closed'],
      ['closed', 'closed'],
      ['closed', 'closed'],
    ])
  })
})

describe('what happens in beads is done here:', () => {
  test('closed, deferred, claimed, opened again', async () => {
    const ids = ['bd-1', 'bd-2', 'bd-3', 'bd-4']
    await using scene = await makeScene(...ids.map((id) => anIssue(id)))
    const { sync, states, bd, world } = scene
    await sync()
    bd.set('bd-1', { status: 'closed' })
    bd.set('bd-2', { status: 'deferred' })
    bd.set('bd-3', { status: 'in_progress' })
    bd.set('bd-4', blocks('external:other:x'))
    expect((await sync()).pulled.map(({ item, to }) => [item.id, to])).toEqual([
      [1, 'closed'],
      [2, 'parked'],
      [3, 'parked'],
      [4, 'parked'],
    ])
    expect(await world.item(2)).toMatchObject({ parked: { kind: 'status-elsewhere', status: 'deferred' } })
    expect(await world.item(4)).toMatchObject({ parked: { kind: 'waits-elsewhere', ids: ['external:other:x'] } })
    expect((await world.context.store.items.history(1))[1]).toMatchObject({
      by: 'beads',
      change: { kind: 'state', from: 'open', to: 'closed' },
    })
    expect(world.told.map((event) => [event.kind, 'item' in event && event.item.id])).toEqual([
      ['closed', 1],
      ['parked', 2],
      ['parked', 3],
      ['parked', 4],
    ])
    for (const id of ['bd-2', 'bd-3']) bd.set(id, { status: 'open' })
    bd.set('bd-4', { dependencies: [] })
    await sync()
    expect((await states())['bd-4']).toEqual(['open', 'open'])
    expect(Object.values(await states()).map(([here]) => here)).toEqual(['closed', 'open', 'open', 'open'])
    expect(await sync()).toMatchObject(nothing)
  })

  test('but never to an item that an agent has, nor to one that is over; both are named until they agree', async () => {
    await using scene = await makeScene(anIssue('bd-1'), anIssue('bd-2'), anIssue('bd-3'), anIssue('bd-4'))
    const { sync, states, bd, world } = scene
    await sync()
    for (const item of [1, 2]) expect((await sling(world.fleet, { item, by: 'cli' })).outcome).toBe('started')
    await parkByHand(world.fleet, 2, { note: undefined, by: 'cli' })
    await closeItem(world.fleet, 3, 'cli')
    await sync()
    for (const id of ['bd-1', 'bd-2']) bd.set(id, { status: 'closed' })
    bd.set('bd-3', { status: 'open' })
    bd.write({ issues: bd.read().issues.filter(({ id }) => id !== 'bd-4') })
    const expected = [
      [1, 'done', 'at-work'],
      [3, 'ready', 'final'],
      [4, 'gone', 'gone'],
      [2, 'done', 'at-work'],
    ]
    for (const _ of [1, 2]) {
      const { left, pulled, pushed } = await sync()
      expect(left.map(({ item, there, why }) => [item.id, there, why])).toEqual(expected)
      expect([pulled, pushed]).toEqual([[], []])
    }
    expect(await states()).toEqual({
      'bd-1': ['hooked', 'closed'],
      'bd-2': ['parked', 'closed'],
      'bd-3': ['closed', 'open'],
      'bd-4': ['open', 'gone'],
    })
  })
})

test('a dry run says what would be done, and does nothing', async () => {
  await using scene = await makeScene(anIssue('bd-1'), anIssue('bd-2'))
  const { sync, states, bd, world } = scene
  expect(await sync({ dryRun: true })).toMatchObject({ imported: { added: { length: 2 } } })
  expect(await states()).toEqual({})
  await sync()
  bd.set('bd-1', { status: 'closed', title: 'new' })
  bd.write({ issues: [...bd.read().issues, anIssue('bd-3')] })
  await closeItem(world.fleet, 2, 'cli')
  const before = [await states(), bd.read().issues]
  const planned = await sync({ dryRun: true })
  expect(planned).toMatchObject({
    pulled: [{ item: { id: 1 }, to: 'closed' }],
    pushed: [{ item: { id: 2 }, to: 'closed' }],
    imported: { added: [{ id: 3 }] },
  })
  expect([await states(), bd.read().issues]).toEqual(before)
  expect(verbs(bd).every((call) => call === 'export --readonly')).toBe(true)
})

describe('when bd', () => {
  test('does it and dies before it says so, both sides agree the next time, and nothing is told twice', async () => {
    await using scene = await makeScene(anIssue('bd-1'))
    const { sync, bd, world } = scene
    await sync()
    await parkByHand(world.fleet, 1, { note: undefined, by: 'cli' })
    bd.write({ trouble: { update: 'lost' } })
    expect(await sync()).toMatchObject({
      pushed: [],
      refused: [{ item: { id: 1 }, said: expect.stringContaining('SIGKILL') }],
    })
    bd.write({ trouble: {} })
    expect(await sync()).toMatchObject(nothing)
    expect(bd.issue('bd-1')).toMatchObject({ status: 'blocked' })
    bd.set('bd-1', { status: 'open' })
    expect(await sync()).toMatchObject({ pulled: [{ to: 'open' }], pushed: [] })
  })

  test('refuses one of several, the others are done, and its words are passed on', async () => {
    await using scene = await makeScene(
      anIssue('bd-1'),
      anIssue('bd-2', blocks('bd-3')),
      anIssue('bd-3', { status: 'pinned' }),
    )
    const { sync, states, bd, world } = scene
    await sync()
    for (const id of [1, 2]) await closeItem(world.fleet, id, 'cli')
    const { pushed, refused } = await sync()
    expect(pushed.map(({ item }) => item.id)).toEqual([1])
    expect(refused).toMatchObject([
      { item: { id: 2 }, said: 'cannot close bd-2: blocked by open issues [bd-3] (use --force to override)' },
    ])
    bd.set('bd-3', { status: 'closed' })
    expect(await sync()).toMatchObject({ pushed: [{ item: { id: 2 } }], refused: [] })
    expect((await states())['bd-2']).toEqual(['closed', 'closed'])
  })

  test("can't add the comment, the status counts all the same", async () => {
    await using scene = await makeScene(anIssue('bd-1'))
    const { sync, bd, world } = scene
    await sync()
    await parkByHand(world.fleet, 1, { note: undefined, by: 'cli' })
    bd.write({ trouble: { comments: 'fails' } })
    expect(await sync()).toMatchObject({
      pushed: [{ to: 'blocked' }],
      refused: [{ said: 'bd comments failed: database is locked' }],
    })
    expect(await sync()).toMatchObject(nothing)
  })

  test('fails or writes nonsense, nothing changes', async () => {
    await using scene = await makeScene(anIssue('bd-1'))
    const { sync, bd, states } = scene
    bd.write({ trouble: { export: 'fails' } })
    await expect(sync()).rejects.toThrow('bd export failed: Error: database is locked')
    bd.write({ trouble: {}, raw: 'Welcome to beads!\n' })
    await expect(sync()).rejects.toMatchObject({
      code: 'program-failed',
      message: 'bd export, line 1: not a JSON object',
    })
    expect(await states()).toEqual({})
  })

  test('hangs, it can be cancelled', async () => {
    await using scene = await makeScene(anIssue('bd-1'))
    scene.bd.write({ trouble: { export: 'hangs' } })
    const cancel = new AbortController()
    const syncing = scene.sync({ signal: cancel.signal })
    await expect.poll(() => scene.world.progress).toContain('reading issues from beads')
    cancel.abort()
    await expect(syncing).rejects.toMatchObject({ code: 'cancelled' })
  })

  test('or its store is missing, the error says what to do', async () => {
    await using scene = await makeScene()
    rmSync(join(scene.bd.bin, 'bd'))
    await expect(scene.sync()).rejects.toMatchObject({ code: 'not-found', message: '"bd" was not found on PATH' })
    rmSync(join(scene.world.repo.path, '.beads'), { recursive: true })
    await expect(scene.sync()).rejects.toMatchObject({ message: 'project has no .beads directory' })
  })
})

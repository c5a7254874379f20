import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { answerCommand } from '../../src/conversations/answer-command.ts'
import { importBeadsFile } from '../../src/fleet/items/beads/import-beads.ts'
import { closeSourceIssue } from '../../src/fleet/items/close-issue.ts'
import { editItem } from '../../src/fleet/items/add.ts'
import { importGithub } from '../../src/fleet/items/import/import-github.ts'
import { importItems } from '../../src/fleet/items/import/import-items.ts'
import type { WantedItem } from '../../src/domain/fleet/import/wanted.ts'
import type { Item } from '../../src/domain/fleet/item.ts'
import type { IsolationContext } from '../../src/isolation/context.ts'
import { createForge } from '../../src/main/forge.ts'
import { anIssue, type BdIssue, blocks } from '../helpers/bd/bd.ts'
import { makeChat } from '../helpers/chat.ts'
import { makeWorld, type World } from '../helpers/world.ts'
import { issue } from '../isolation/scene.ts'
import { startDouble } from '../platforms/github-double.ts'

const items = ({ context: { store } }: World): Promise<Item[]> => store.items.list({})

const titles = async (world: World): Promise<Record<number, string>> =>
  Object.fromEntries((await items(world)).map(({ id, title }) => [id, title]))

const changes = async ({ context: { store } }: World, id: number) =>
  (await store.items.history(id)).map(({ by, change }) => [by, change])

const move = async ({ context: { store } }: World, id: number, to: 'hooked' | 'closed'): Promise<void> => {
  const change = { kind: 'state', from: 'open', to } as const
  expect(await store.items.move(id, { from: 'open', to, change, by: 'cli', at: 1 })).toBe(true)
}

describe('issues of GitHub', () => {
  const scene = async () => {
    const double = await startDouble()
    const world = await makeWorld()
    const { log, clock, secrets } = world.context
    const forge = createForge(async () => ({ token: 'ghp_x', apiUrl: double.url }), { log, clock, secrets })
    const context: IsolationContext = { ...world.context, forge }
    const codebase = { ...world.codebase, github: 'acme/app' }
    await world.context.store.codebases.update(codebase.id, { github: 'acme/app' })
    const load = async (labels: readonly string[] = [], change: { dryRun?: boolean; limit?: number } = {}) => {
      const query = { labels, state: 'open', limit: change.limit } as const
      const done = await importGithub(context, { codebase, query, by: 'cli', dryRun: change.dryRun === true })
      return done.outcome === 'imported' ? done : expect.unreachable(JSON.stringify(done))
    }
    return {
      double,
      world,
      context,
      codebase,
      load,
      [Symbol.asyncDispose]: async () => {
        await world[Symbol.asyncDispose]()
        await double.close()
      },
    }
  }

  const ids = (some: readonly { readonly item: { readonly id: number } }[]): number[] => some.map(({ item }) => item.id)

  test('become items, once; what was changed there follows, until the work begins or a person edits it', async () => {
    await using here = await scene()
    const { double, world, load } = here
    double.issue(11, { title: 'Fix login', body: 'It says 500', label: 'P0' })
    double.issue(12, { title: 'Logout' })
    double.issue(13, { title: 'Reset' })
    const first = await load()
    expect(first.added.map(({ id, title, priority, source }) => [id, title, priority, source])).toMatchObject([
      [1, 'Fix login', 0, { kind: 'github', repository: 'acme/app', number: 11 }],
      [2, 'Logout', 2, { number: 12 }],
      [3, 'Reset', 2, { number: 13 }],
    ])
    expect(first.repository).toBe('acme/app')
    expect(await load()).toMatchObject({ added: [], updated: [], unchanged: { length: 3 }, kept: [] })
    await editItem({ isolation: here.context }, 2, { title: 'Mine' }, 'cli')
    await move(world, 3, 'hooked')
    double.issue(11, { title: 'Fix the login', body: '', label: 'P1' })
    double.issue(12, { title: 'Theirs', body: 'more' })
    double.issue(13, { title: 'Reset it' })
    const again = await load()
    expect(again.updated.map(({ item, fields }) => [item.id, fields])).toEqual([
      [1, ['title', 'body', 'priority']],
      [2, ['body']],
    ])
    expect(again.kept.map(({ item, fields, why }) => [item.id, fields, why])).toEqual([
      [2, ['title'], 'edited'],
      [3, ['title'], 'begun'],
    ])
    expect(await titles(world)).toEqual({ 1: 'Fix the login', 2: 'Mine', 3: 'Reset' })
    expect((await items(world))[0]).toMatchObject({ body: '', priority: 1 })
    expect(await changes(world, 1)).toEqual([
      ['cli', { kind: 'imported', from: 'github' }],
      ['cli', { kind: 'edited', fields: ['title', 'body', 'priority'], from: 'github' }],
    ])
    expect(await load()).toMatchObject({ updated: [], kept: [{ item: { id: 3 }, why: 'begun' }] })
  })

  test('that are no longer open are named, those without the label now are looked at, and finished items are not', async () => {
    await using here = await scene()
    const { double, world, load } = here
    for (const n of [1, 2, 3, 4, 5]) double.issue(n, { label: 'ready' })
    await load(['ready'])
    await move(world, 5, 'closed')
    double.issue(1, { state: 'closed' })
    double.issues.delete('acme/app#2')
    double.issue(3, { title: 'renamed' })
    double.issue(5, { state: 'closed' })
    const again = await load(['ready'])
    expect(again.noLongerOpen.map(({ item, there }) => [item.id, there])).toEqual([
      [1, 'closed'],
      [2, 'gone'],
    ])
    expect(ids(again.updated)).toEqual([3])
    expect(again.unchanged.map(({ id }) => id)).toEqual([4])
    expect((await items(world)).map(({ state }) => state)).toEqual(['open', 'open', 'open', 'open', 'closed'])
    double.trouble = (request) => (request.endsWith('/issues/2') ? { status: 502 } : undefined)
    const half = await load(['ready'])
    expect(ids(half.noLongerOpen)).toEqual([1])
    expect(half.unchecked.map(({ id }) => id)).toEqual([2, 3])
    expect(half.problem).toMatchObject({ outcome: 'unreachable' })
  })

  test('that have a worktree already are imported, and named with it', async () => {
    await using here = await scene()
    const { double, world, load } = here
    const environment = await issue(world, 7)
    for (const n of [7, 8]) double.issue(n)
    const report = await load()
    expect(report.added).toHaveLength(2)
    expect(report.elsewhere.map((one) => [one.item.id, one.environment.branch])).toEqual([[1, 'issue-7']])
    await world.context.store.environments.addAlias(environment.id, world.codebase.id, { type: 'issue', id: '8' }, 1)
    expect(ids((await load()).elsewhere)).toEqual([1, 2])
  })

  test('change nothing in a dry run, and only so many are taken', async () => {
    await using here = await scene()
    const { double, world, load } = here
    for (const n of [1, 2, 3]) double.issue(n)
    expect(await load([], { dryRun: true })).toMatchObject({ added: [{ id: 1 }, { id: 2 }, { id: 3 }] })
    expect(await items(world)).toEqual([])
    expect(await load([], { limit: 2 })).toMatchObject({ more: true, added: { length: 2 } })
    double.issue(1, { title: 'new' })
    expect(await load([], { dryRun: true })).toMatchObject({
      added: [{ id: 3 }],
      updated: [{ item: { title: 'new' } }],
    })
    expect(await titles(world)).toEqual({ 1: 'Issue 1', 2: 'Issue 2' })
  })

  test('hide nothing, and need no title', async () => {
    await using here = await scene()
    here.double.issue(1, { title: '\u200b', body: 'x'.repeat(120_000) })
    const { added } = await here.load()
    expect(added.map(({ title, body }) => [title, body.length])).toEqual([['Issue #1', 100_000]])
  })

  test('are closed once their items have landed, and only then', async () => {
    await using here = await scene()
    const { double, context, codebase } = here
    double.issue(7)
    const source = { kind: 'github', repository: 'Acme/App', number: 7 } as const
    const landed = { id: 3, state: 'landed', source, pullRequest: undefined } as const
    const close = (change: Partial<Item>, where = codebase) =>
      closeSourceIssue(context, where, { ...landed, ...change }, 'Landed')
    const left = (why: string) => ({ outcome: 'left', why })
    // As after `done --mode push`: nothing is on the base branch yet.
    expect(await close({ state: 'closed' })).toEqual(left('not-landed'))
    expect(await close({ state: 'in_review' })).toEqual(left('not-landed'))
    expect(await close({ pullRequest: 'https://github.com/acme/app/pull/9' })).toEqual(left('pull-request'))
    expect(await close({ source: { kind: 'beads', id: 'bd-1' } })).toEqual(left('no-issue'))
    expect(await close({}, { ...codebase, github: 'acme/other' })).toEqual(left('other-repository'))
    expect(await closeSourceIssue({}, codebase, landed, 'Landed')).toEqual({ outcome: 'no-forge' })
    expect(double.requests).toEqual([])
    expect(await close({})).toEqual({ outcome: 'closed' })
    expect(await close({})).toEqual({ outcome: 'closed-already' })
    expect(double.bodies('acme/app#7')).toHaveLength(1)
  })

  test('are imported from a chat of this server, and not from a thread of the repository', async () => {
    await using here = await scene()
    here.double.issue(1)
    await here.world.context.store.codebases.update(here.codebase.id, { github: 'acme/app' })
    const chat = await makeChat({ ...here.world, context: here.context })
    expect(await chat.say('/item import github')).toContain('Imported from acme/app: 1 added.')
    expect((await here.world.context.store.items.history(1))[0]?.by).toBe('test:T1')
    const conversation = { ...(await chat.conversation()), platform: 'github', conversationId: 'acme/app#1' }
    const controls = { wake: () => undefined, stop: () => expect.unreachable() }
    const { signal } = new AbortController()
    for (const text of ['/item import github', '/item sync beads --dry-run']) {
      const answer = await answerCommand(chat.context, { conversation, text, controls, signal })
      expect(answer.kind === 'answer' && answer.text).toContain("isn't available here")
    }
    // A chat can't name files of the server.
    expect(await chat.say('/item import beads /etc/passwd')).toContain('Unknown command')
  })

  test('of a repository whose name was not known yet give it the name', async () => {
    await using here = await scene()
    const { context, codebase, double } = here
    double.issue(1)
    const remoteUrl = 'git@127.0.0.1:acme/app.git'
    await context.store.codebases.update(codebase.id, { github: undefined, remoteUrl })
    const query = { labels: [], state: 'open', limit: undefined } as const
    const request = { codebase: { ...codebase, github: undefined, remoteUrl }, query, by: 'cli' }
    await importGithub(context, { ...request, dryRun: true })
    expect((await context.store.codebases.get(codebase.id))?.github).toBeUndefined()
    await importGithub(context, { ...request, dryRun: false })
    expect((await context.store.codebases.get(codebase.id))?.github).toBe('acme/app')
  })
})

describe('a file of beads', () => {
  const file = (world: World, ...issues: readonly (BdIssue | string)[]): string => {
    const path = join(world.box.root, 'issues.jsonl')
    writeFileSync(path, issues.map((one) => `${typeof one === 'string' ? one : JSON.stringify(one)}\n`).join(''))
    return path
  }

  const load = (world: World, path: string, dryRun = false) =>
    importBeadsFile(world.context, path, { codebase: world.codebase, by: 'cli', dryRun })

  test('becomes items that wait for each other, whatever the order of its lines', async () => {
    await using world = await makeWorld()
    const path = file(
      world,
      anIssue('bd-3', { ...blocks('bd-2', 'bd-0'), priority: 0 }),
      anIssue('bd-2', blocks('bd-1')),
      anIssue('bd-0', { status: 'closed' }),
      anIssue('bd-1', { status: 'in_progress' }),
    )
    const { added, leftOut } = await load(world, path)
    expect(leftOut).toEqual({ closed: 1, deleted: 0, aside: 0, others: 0 })
    expect(await items(world)).toMatchObject([
      { id: 1, title: 'Title of bd-1', state: 'parked', after: [] },
      { id: 2, title: 'Title of bd-2', state: 'open', after: [1] },
      { id: 3, title: 'Title of bd-3', state: 'open', after: [2], priority: 0 },
    ])
    expect(await items(world)).toStrictEqual(added)
    expect(await load(world, path)).toMatchObject({ added: [], updated: [], unchanged: { length: 3 } })
  })

  test('imported again updates what follows it, and names what is over there; states stay', async () => {
    await using world = await makeWorld()
    await load(world, file(world, anIssue('bd-1'), anIssue('bd-2'), anIssue('bd-3'), anIssue('bd-4')))
    const again = await load(
      world,
      file(
        world,
        anIssue('bd-1', { title: 'new', ...blocks('bd-5') }),
        anIssue('bd-2', { status: 'closed' }),
        anIssue('bd-3', { status: 'deferred' }),
        anIssue('bd-5'),
      ),
    )
    expect(again).toMatchObject({
      added: [{ id: 5 }],
      updated: [{ item: { id: 1 }, fields: ['title', 'after'] }],
      noLongerOpen: [
        { item: { id: 2 }, there: 'closed' },
        { item: { id: 4 }, there: 'gone' },
      ],
    })
    expect((await items(world)).map(({ state, after }) => [state, after])).toEqual([
      ['open', [5]],
      ['open', []],
      ['open', []],
      ['open', []],
      ['open', []],
    ])
  })

  test('is imported as a whole or not at all', async () => {
    await using world = await makeWorld()
    await expect(load(world, file(world, anIssue('bd-1'), '{}'))).rejects.toThrow('issues.jsonl, line 2: id: ')
    expect(await items(world)).toEqual([])
  })

  test.each<[string, readonly BdIssue[], string]>([
    [
      'of blockers',
      [anIssue('a-1', blocks('a-2')), anIssue('a-2', blocks('a-3')), anIssue('a-3', blocks('a-1'))],
      'a-1 → a-2 → a-3 → a-1',
    ],
    ['of one', [anIssue('a-1', blocks('a-1'))], 'a-1 → a-1'],
    [
      'of parents',
      [
        anIssue('a-1', { dependencies: [{ depends_on_id: 'a-2', type: 'parent-child' }] }),
        anIssue('a-2', { dependencies: [{ depends_on_id: 'a-1', type: 'parent-child' }] }),
      ],
      'parents of each other: a-1 → a-2 → a-1',
    ],
  ])('with a circle %s is refused, and the circle named', async (_name, issues, circle) => {
    await using world = await makeWorld()
    await expect(load(world, file(world, ...issues))).rejects.toThrow(circle)
    expect(await items(world)).toEqual([])
  })

  test('with a circle through what somebody edited here is refused, too', async () => {
    await using world = await makeWorld()
    await load(world, file(world, anIssue('bd-1'), anIssue('bd-2')))
    const own = { codebaseId: world.codebase.id, title: 'own', body: '', priority: 2, after: [2] } as const
    await world.context.store.items.insert({ ...own, source: undefined, createdBy: 'cli', createdAt: 1 })
    await editItem({ isolation: world.context }, 1, { after: [3] }, 'cli')
    const circular = file(world, anIssue('bd-1'), anIssue('bd-2', blocks('bd-1')))
    await expect(load(world, circular)).rejects.toThrow('bd-1 → item 3 → bd-2 → bd-1')
    expect((await items(world))[1]).toMatchObject({ after: [] })
  })

  test('is a file', { timeout: 10_000 }, async () => {
    await using world = await makeWorld()
    const at = (name: string) => join(world.box.root, name)
    execFileSync('mkfifo', [at('fifo')])
    await expect(load(world, at('fifo'))).rejects.toMatchObject({
      code: 'unusable-file',
      message: expect.stringContaining('is a FIFO'),
    })
    await expect(load(world, '/dev/zero')).rejects.toThrow('is a device')
    await expect(load(world, world.box.root)).rejects.toThrow('is a directory')
    await expect(load(world, at('none'))).rejects.toMatchObject({ code: 'not-found' })
  })
})

test('two imports at once add each source once', async () => {
  await using world = await makeWorld()
  const { store } = world.context
  const wanted = Array.from({ length: 20 }, (_, n): WantedItem => {
    const source = { kind: 'github', repository: 'acme/app', number: n + 1 } as const
    return { source, title: `Issue ${n}`, body: '', priority: 2, after: [] }
  })
  const request = { codebase: world.codebase, kind: 'github', wanted, by: 'cli', at: 1, dryRun: false } as const
  const done = await Promise.all([importItems(store, request), importItems(store, request)])
  expect(done.map(({ added }) => added.length).toSorted((a, b) => a - b)).toEqual([0, 20])
  expect(await items(world)).toHaveLength(20)
})

test('what an item waits for and nobody knows stops the import', async () => {
  await using world = await makeWorld()
  const source = { kind: 'beads', id: 'bd-1' } as const
  const wanted = [{ source, title: 'x', body: '', priority: 2, after: ['beads:bd-2'] }] as const
  const request = { codebase: world.codebase, kind: 'beads', wanted, by: 'cli', at: 1, dryRun: false } as const
  await expect(importItems(world.context.store, request)).rejects.toThrow('beads:bd-2')
  expect(await items(world)).toEqual([])
})

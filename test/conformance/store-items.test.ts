import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { canItemBecome, type ItemSource, itemStates, sourceKey } from '../../src/domain/fleet/item.ts'
import type { AppError } from '../../src/domain/errors.ts'
import { toCodebaseId } from '../../src/domain/names.ts'
import type { ImportedItem } from '../../src/store/fleet/store.ts'
import type { Store } from '../../src/store/store.ts'
import { aConversation, aNewItem, aRecoveredItem } from '../helpers/fleet-values.ts'
import { type EngineUnderTest, onEachEngine } from '../helpers/store-engines.ts'
import { aCodebase, anEnvironment } from '../helpers/store-values.ts'

const one = toCodebaseId('codebase-one')
const two = toCodebaseId('codebase-two')
const signed = { by: 'cli', at: 5 }

const withCodebases = async (engine: EngineUnderTest): ReturnType<EngineUnderTest['open']> => {
  const store = await engine.open(await engine.fresh())
  for (const key of ['one', 'two']) await store.codebases.insert(aCodebase(key))
  return store
}

const added = async (store: Store, ...asked: Parameters<typeof aNewItem>) =>
  (await store.items.insert(aNewItem(...asked))) ?? expect.unreachable('it is there already')

const ids = (items: readonly { readonly id: number }[]) => items.map(({ id }) => id)

onEachEngine((engine) => {
  describe('items', () => {
    test('come back as they were put in, under small numbers, with all that goes with them', async () => {
      const store = await withCodebases(engine)
      const first = await added(store, 'Fix login')
      expect(first).toStrictEqual({
        ...aNewItem('Fix login'),
        id: 1,
        state: 'open',
        environmentId: undefined,
        parked: undefined,
        pullRequest: undefined,
        updatedAt: 1_700_000_000_000,
      })
      const source: ItemSource = { kind: 'github', repository: 'acme/app', number: 7 }
      const more = { body: 'Über\nalles 🌲', priority: 0, after: [1], source, createdBy: 'slack:C1' } as const
      const second = await added(store, 'two', more)
      expect(second).toMatchObject({ id: 2, ...more })
      expect(await store.items.get(2)).toStrictEqual(second)
      expect(await store.items.list({})).toStrictEqual([first, second])
      expect(await store.items.get(3)).toBeUndefined()
    })

    test('get different numbers when they are added at the same time', async () => {
      const store = await withCodebases(engine)
      const made = await Promise.all(Array.from({ length: 20 }, (_, n) => added(store, `item ${n}`)))
      expect(ids(made).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, n) => n + 1))
    })

    test('are listed by codebase and state', async () => {
      const store = await withCodebases(engine)
      for (const codebaseId of [one, two, one]) await added(store, 'x', { codebaseId })
      await store.items.move(3, { from: 'open', to: 'closed', change: closing, ...signed })
      expect(ids(await store.items.list({ codebaseId: one }))).toEqual([1, 3])
      expect(ids(await store.items.list({ codebaseId: one, states: ['open'] }))).toEqual([1])
      expect(ids(await store.items.list({ states: ['open', 'closed'] }))).toEqual([1, 2, 3])
      expect(await store.items.counts(one)).toStrictEqual({ ...noItems, open: 1, ready: 1, closed: 1 })
      expect(await store.items.counts()).toStrictEqual({ ...noItems, open: 2, ready: 2, closed: 1 })
    })

    test('move as the table says, and no other way', async () => {
      const store = await withCodebases(engine)
      for (const from of itemStates) {
        for (const to of itemStates) {
          const id = 100 + itemStates.indexOf(from) * 10 + itemStates.indexOf(to)
          await store.items.recover(aRecoveredItem(id, { state: from }))
          const change = { kind: 'state', from, to } as const
          const move = async () => store.items.move(id, { from, to, change, ...signed })
          const moved = await move().catch((error: AppError) => error.code)
          expect([from, to, moved]).toEqual([from, to, canItemBecome(from, to) ? true : 'illegal-transition'])
          expect((await store.items.get(id))?.state).toBe(moved === true ? to : from)
        }
      }
    })

    test('are moved by one of many, and only that one is in the history', async () => {
      const store = await withCodebases(engine)
      await added(store, 'x')
      const moves = ['hooked', 'parked', 'closed', 'hooked'] as const
      const done = await Promise.all(
        moves.map((to, n) => store.items.move(1, { from: 'open', to, change: closing, by: `racer ${n}`, at: 9 })),
      )
      expect(done.filter(Boolean)).toHaveLength(1)
      expect(await store.items.history(1)).toHaveLength(2)
      expect((await store.items.get(1))?.state).toBe(moves[done.indexOf(true)])
    })

    test('keep what goes with a state only as long as that lasts', async () => {
      const store = await withCodebases(engine)
      await added(store, 'x')
      await store.environments.insert(anEnvironment('a'), undefined)
      const { id: environmentId } = anEnvironment('a')
      const parked = { kind: 'asked', note: 'which database?' } as const
      const change = { kind: 'parked', from: 'open', reason: parked } as const
      await store.items.move(1, { from: 'open', to: 'parked', change, patch: { parked, environmentId }, ...signed })
      expect(await store.items.get(1)).toMatchObject({ state: 'parked', parked, environmentId, updatedAt: 5 })
      expect(ids(await store.items.ofEnvironments([environmentId]))).toEqual([1])
      await store.items.move(1, { from: 'parked', to: 'open', change: closing, ...signed, at: 6 })
      expect(await store.items.get(1)).toMatchObject({ state: 'open', parked: undefined, environmentId, updatedAt: 6 })
      await store.items.update(1, { pullRequest: 'https://example.org/1' })
      await store.items.update(1, {})
      await store.items.detachEnvironment(environmentId)
      expect(await store.items.get(1)).toMatchObject({ pullRequest: 'https://example.org/1', environmentId: undefined })
      expect(await store.items.ofEnvironments([environmentId])).toEqual([])
    })

    test('have a history: who changed what, and when', async () => {
      const store = await withCodebases(engine)
      await added(store, 'x', { createdBy: 'slack:C1' })
      await added(store, 'y')
      await store.items.edit(1, { title: 'better', priority: 1 }, { by: 'ann', at: 2 })
      await store.items.edit(1, {}, { by: 'nobody', at: 3 })
      await store.items.note(1, { kind: 'pull-request', url: 'u' }, { by: 'agent:alder', at: 4 })
      expect(await store.items.history(1)).toStrictEqual([
        { at: 1_700_000_000_000, by: 'slack:C1', change: { kind: 'created' } },
        { at: 2, by: 'ann', change: { kind: 'edited', fields: ['title', 'priority'] } },
        { at: 4, by: 'agent:alder', change: { kind: 'pull-request', url: 'u' } },
      ])
      expect(await store.items.get(1)).toMatchObject({ title: 'better', priority: 1, updatedAt: 2 })
      expect(await store.items.history(3)).toEqual([])
    })

    test('are ready when nothing that they wait for is unsettled: the most urgent first, then the oldest', async () => {
      const store = await withCodebases(engine)
      await added(store, 'young', { createdAt: 30 })
      await added(store, 'old', { createdAt: 10 })
      await added(store, 'urgent', { createdAt: 40, priority: 0 })
      await added(store, 'waits for two', { after: [1, 2], priority: 0 })
      await added(store, 'elsewhere', { codebaseId: two, priority: 4 })
      const ready = async (filter = {}) => ids(await store.items.ready(filter))
      expect(await ready()).toEqual([3, 2, 1, 5])
      expect(await ready({ codebaseIds: [one] })).toEqual([3, 2, 1])
      expect(await ready({ codebaseIds: [], limit: 9 })).toEqual([])
      expect(await ready({ limit: 2 })).toEqual([3, 2])
      await store.items.move(1, { from: 'open', to: 'closed', change: closing, ...signed })
      await store.items.move(2, { from: 'open', to: 'hooked', change: closing, ...signed })
      await store.items.move(2, { from: 'hooked', to: 'in_review', change: closing, ...signed })
      expect(await ready()).toEqual([3, 5])
      expect(await store.items.counts()).toMatchObject({ open: 3, ready: 2, in_review: 1, closed: 1 })
      await store.items.move(2, { from: 'in_review', to: 'landed', change: closing, ...signed })
      expect(await ready()).toEqual([3, 4, 5])
    })

    test('wait for others, each once', async () => {
      const store = await withCodebases(engine)
      await added(store, 'a')
      await added(store, 'b', { after: [1, 1] })
      expect(await store.items.lockDependencies()).toStrictEqual(new Map([[2, [1]]]))
      await store.items.edit(1, { after: [2] }, signed)
      await store.items.edit(2, { after: [] }, signed)
      expect((await store.items.get(2))?.after).toEqual([])
      expect(await store.items.lockDependencies()).toStrictEqual(new Map([[1, [2]]]))
      await expect(store.items.edit(2, { after: [99] }, signed)).rejects.toThrow(/foreign key/i)
    })

    test('get other dependencies from one at a time, who has seen all of them', async () => {
      const target = await engine.fresh()
      const store = await engine.open(target)
      const other = await engine.open(target, { busy: 60, wait: 200 })
      const decide = (from: Store) => from.transaction((inside) => inside.items.lockDependencies())
      await store.transaction(async (inside) => {
        await inside.items.lockDependencies()
        const why = engine.name === 'sqlite' ? /another process has held/ : /lock timeout/
        await expect(decide(other)).rejects.toThrow(why)
      })
      expect(await decide(other)).toStrictEqual(new Map())
    })

    test('are one per source and codebase, also when two import at once', async () => {
      const store = await withCodebases(engine)
      const source: ItemSource = { kind: 'github', repository: 'Acme/App', number: 7 }
      const same: ItemSource = { kind: 'github', repository: 'acme/app', number: 7 }
      const insert = (change: Partial<Parameters<typeof aNewItem>[1]>) => store.items.insert(aNewItem('x', change))
      const made = await Promise.all(Array.from({ length: 5 }, () => insert({ source })))
      expect(made.filter((item) => item !== undefined)).toHaveLength(1)
      expect(await insert({ source: same })).toBeUndefined()
      expect(await insert({ source, codebaseId: two })).toMatchObject({ codebaseId: two })
      expect(await insert({ source: { ...source, number: 8 } })).toMatchObject({ source: { number: 8 } })
      expect(await insert({ source: { kind: 'beads', id: 'bd-1' } })).toMatchObject({ source: { id: 'bd-1' } })
      expect(await store.items.bySource(two, sourceKey(same))).toMatchObject({ codebaseId: two })
      expect(await store.items.bySource(one, 'beads:bd-2')).toBeUndefined()
      // No number was used up by those that were known.
      expect((await added(store, 'next')).id).toBe((await store.items.list({})).length)
    })

    test('of an import come in at once, whoever waits for whom, and have it in their history', async () => {
      const store = await withCodebases(engine)
      await added(store, 'first')
      const imported = (id: number, change: Partial<ImportedItem> = {}): ImportedItem => ({
        ...aNewItem(`imported ${id}`),
        id,
        parked: undefined,
        source: { kind: 'beads', id: `bd-${id}` },
        ...change,
      })
      const parked = { kind: 'status-elsewhere', source: 'beads', status: 'deferred' } as const
      await store.transaction(async (inside) => {
        expect(await inside.items.takeIds(0)).toBe(2)
        expect(await inside.items.takeIds(2)).toBe(2)
        await inside.items.insertImported([])
        await inside.items.insertImported([imported(2, { after: [3, 1, 3] }), imported(3, { parked })])
      })
      const made = await store.items.fromSource(one, 'beads')
      expect(made).toMatchObject([
        { id: 2, state: 'open', after: [1, 3], source: { kind: 'beads', id: 'bd-2' }, createdBy: 'cli' },
        { id: 3, state: 'parked', parked, after: [] },
      ])
      expect(await store.items.get(2)).toStrictEqual(made[0])
      expect(await store.items.bySource(one, 'beads:bd-3')).toStrictEqual(made[1])
      expect(await store.items.fromSource(one, 'github')).toEqual([])
      expect(await store.items.fromSource(two, 'beads')).toEqual([])
      expect(await store.items.history(2)).toStrictEqual([
        { at: 1_700_000_000_000, by: 'cli', change: { kind: 'imported', from: 'beads' } },
      ])
      await store.items.edit(2, { title: 'newer' }, { ...signed, from: 'beads' })
      expect((await store.items.history(2))[1]?.change).toEqual({ kind: 'edited', fields: ['title'], from: 'beads' })
      const seen = { title: 't', body: 'b', priority: 2, after: [], phases: { there: 'ready', here: 'ready' } } as const
      await store.items.update(2, { source: { kind: 'beads', id: 'bd-2', seen } })
      expect(await store.items.bySource(one, 'beads:bd-2')).toMatchObject({ title: 'newer', source: { seen } })
      expect((await added(store, 'next')).id).toBe(4)
      const twice = store.transaction((inside) => inside.items.insertImported([imported(5), imported(6), imported(5)]))
      await expect(twice).rejects.toThrow(/unique/i)
      expect((await store.items.list({})).map(({ id }) => id)).toEqual([1, 2, 3, 4])
    })

    test('of an import may be many', async () => {
      const store = await withCodebases(engine)
      const items = Array.from({ length: 3_000 }, (_, n): ImportedItem => ({
        ...aNewItem('x', { after: n === 0 ? [] : [n] }),
        id: n + 1,
        parked: undefined,
        source: { kind: 'github', repository: 'acme/app', number: n + 1 },
      }))
      await store.transaction(async (inside) => {
        await inside.items.takeIds(items.length)
        await inside.items.insertImported(items)
      })
      const found = await store.items.fromSource(one, 'github')
      expect([found.length, found.at(-1)]).toMatchObject([3_000, { id: 3_000, after: [2_999] }])
      expect(ids(await store.items.ready({}))).toEqual([1])
    })

    test('recovered after the database was lost keep their number; new ones come after them', async () => {
      const store = await withCodebases(engine)
      await added(store, 'a')
      for (const id of [90, 80, 70, 60, 50, 40, 30, 20, 10, 7]) {
        const item = aRecoveredItem(id, { after: [1, 3], pullRequest: 'u' })
        const answers = await Promise.all([item, item, item].map((again) => store.items.recover(again)))
        expect(answers.filter(Boolean)).toHaveLength(1)
      }
      expect(await store.items.get(7)).toMatchObject({ title: 'recovered 7', state: 'hooked', after: [1] })
      expect((await store.items.history(7)).map(({ change }) => change.kind)).toEqual(['recovered'])
      expect(await store.items.recover(aRecoveredItem(1))).toBe(false)
      expect(await store.items.get(1)).toMatchObject({ title: 'a' })
      expect(await store.items.recover(aRecoveredItem(3))).toBe(true)
      expect((await added(store, 'next')).id).toBe(91)
    })

    test('recovered keep their source, unless it was imported anew', async () => {
      const store = await withCodebases(engine)
      const source: ItemSource = { kind: 'github', repository: 'acme/app', number: 7 }
      await added(store, 'imported anew', { source })
      expect(await store.items.recover(aRecoveredItem(5, { source }))).toBe(true)
      expect(await store.items.recover(aRecoveredItem(6, { source: { ...source, number: 8 } }))).toBe(true)
      expect((await store.items.list({})).map((item) => [item.id, item.source?.kind])).toEqual([
        [1, 'github'],
        [5, undefined],
        [6, 'github'],
      ])
    })

    test('are followed by conversations, each once, in the order in which they began', async () => {
      const store = await withCodebases(engine)
      await added(store, 'x')
      for (const key of ['a', 'b']) await store.conversations.ensure(aConversation(key))
      await store.items.follow(1, 'conversation-b', 1)
      await store.items.follow(1, 'conversation-a', 2)
      await store.items.follow(1, 'conversation-b', 3)
      expect(await store.items.followers(1)).toEqual(['conversation-b', 'conversation-a'])
      expect(await store.items.followers(2)).toEqual([])
    })

    test('are read however many there are: a statement has only so many variables', async () => {
      const store = await withCodebases(engine)
      await sql`
        insert into items (id, codebase_id, title, body, priority, state, created_by, created_at, updated_at)
        with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 66000)
        select n, ${one}, 'x', '', 2, 'open', 'cli', 1, 1 from numbers`.execute(store.database.db)
      await store.items.edit(66_000, { after: [1] }, signed)
      const all = await store.items.list({})
      expect(all.at(-1)).toMatchObject({ id: 66_000, after: [1] })
      expect(await store.fleetAgents.ofItems(ids(all))).toEqual([])
    })
  })
})

const closing = { kind: 'state', from: 'open', to: 'closed' } as const

const noItems = { open: 0, ready: 0, hooked: 0, in_review: 0, parked: 0, landed: 0, closed: 0 }

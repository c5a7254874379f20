import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { toCodebaseId } from '../../src/domain/names.ts'
import type { Database } from '../../src/store/engine.ts'
import type { Store } from '../../src/store/store.ts'
import { aNewItem, aNewLanding, anAgent, aRun } from '../helpers/fleet-values.ts'
import { onEachEngine } from '../helpers/store-engines.ts'
import { aCodebase, anEnvironment } from '../helpers/store-values.ts'

const one = toCodebaseId('codebase-one')
const two = toCodebaseId('codebase-two')
const signed = { by: 'cli', at: 5 }
const closing = { kind: 'state', from: 'open', to: 'closed' } as const

const close = (store: Store, id: number) =>
  store.items.move(id, { from: 'open', to: 'closed', change: closing, ...signed })

const waiting = async ({ database }: { readonly database: Database }): Promise<number> => {
  const { rows } = await sql<{ count: number }>`
    select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
  `.execute(database.db)
  return rows[0]?.count ?? 0
}

onEachEngine((engine) => {
  describe('a codebase with items and agents', () => {
    test('stays while an agent lives or an item is unsettled, and says which', async () => {
      const store = await engine.open(await engine.fresh())
      await store.codebases.insert(aCodebase())
      await store.items.insert(aNewItem('x'))
      await store.fleetAgents.insert(anAgent('alder', { itemId: 1 }))
      const refused = (message: RegExp) =>
        expect(store.codebases.remove(one)).rejects.toMatchObject({
          code: 'codebase-in-use',
          message: expect.stringMatching(message) as string,
        })
      await refused(/alder/)
      await store.fleetAgents.move('agent-alder', 'spawning', 'crashed')
      await refused(/alder/)
      await store.fleetAgents.move('agent-alder', 'crashed', 'gone', { endedAt: 3 })
      await refused(/items, such as 1/)
      const reason = { kind: 'asked', note: undefined } as const
      const parked = { kind: 'parked', from: 'open', reason } as const
      await store.items.move(1, { from: 'open', to: 'parked', change: parked, patch: { parked: reason }, ...signed })
      await refused(/items, such as 1/)
      expect(await store.items.get(1)).toMatchObject({ state: 'parked' })
    })

    test('goes with what is settled, and with agents that are gone; others stay', async () => {
      const store = await engine.open(await engine.fresh())
      for (const key of ['one', 'two']) await store.codebases.insert(aCodebase(key))
      await store.environments.insert(anEnvironment('a'), undefined)
      const { id: environmentId } = anEnvironment('a')
      await store.items.insert(aNewItem('x'))
      await store.items.update(1, { environmentId })
      await store.items.insert(aNewItem('waits elsewhere', { codebaseId: two, after: [1] }))
      await store.fleetAgents.insert(anAgent('alder', { itemId: 1 }))
      await store.formulaRuns.insert(aRun('run', 'agent-alder'))
      await store.fleetAgents.insert(anAgent('beech', { codebaseId: two }))
      await store.landings.enqueue(aNewLanding('x'))
      await store.fleetAgents.move('agent-alder', 'spawning', 'gone', { endedAt: 3 })
      await close(store, 1)
      await store.environments.transition(environmentId, 'creating', 'removed')
      await store.codebases.remove(one)
      expect(await store.codebases.get(one)).toBeUndefined()
      expect(await store.items.get(1)).toBeUndefined()
      expect(await store.items.history(1)).toEqual([])
      expect(await store.fleetAgents.get('agent-alder')).toBeUndefined()
      expect(await store.formulaRuns.get('run')).toBeUndefined()
      expect(await store.landings.get(1)).toBeUndefined()
      expect(await store.items.ready({})).toMatchObject([{ id: 2, after: [] }])
      expect(await store.fleetAgents.get('agent-beech')).toBeDefined()
      // Its number isn't given away again.
      expect(await store.items.insert(aNewItem('next', { codebaseId: two }))).toMatchObject({ id: 3 })
    })

    const newcomers: Record<string, (inside: Store) => Promise<unknown>> = {
      'an item': (inside) => inside.items.insert(aNewItem('x')),
      'an agent': (inside) => inside.fleetAgents.insert(anAgent('lead', { kind: 'crew', pool: undefined })),
    }
    test.each(Object.entries(newcomers))('is not removed under %s that is just being added', async (_, insert) => {
      const target = await engine.fresh()
      const [store, other] = [await engine.open(target), await engine.open(target)]
      await store.codebases.insert(aCodebase())
      const { removing } = await store.transaction(async (inside) => {
        await insert(inside)
        const removal = other.codebases.remove(one).catch((error: unknown) => error)
        // SQLite lets it begin only when we are done.
        await expect.poll(() => (engine.name === 'postgres' ? waiting(store) : 1)).toBe(1)
        return { removing: removal }
      })
      expect(await removing).toMatchObject({ code: 'codebase-in-use' })
    })
  })
})

import { describe, expect, test } from 'vitest'
import { newestMigration } from '../../src/store/migrate.ts'
import { migrations } from '../../src/store/migrations/all.ts'
import { onEachEngine } from '../helpers/store-engines.ts'
import { aCodebase, anEnvironment } from '../helpers/store-values.ts'

onEachEngine((engine) => {
  describe('a transaction', () => {
    test('happens as a whole', async () => {
      const store = await engine.open(await engine.fresh())
      const answer = await store.transaction(async (inside) => {
        await inside.codebases.insert(aCodebase())
        await inside.environments.insert(anEnvironment('a'), 1)
        return 'done'
      })
      expect(answer).toBe('done')
      expect(await store.environments.get(anEnvironment('a').id)).toBeDefined()
    })

    test('that throws leaves nothing, also of what nested calls did', async () => {
      const store = await engine.open(await engine.fresh())
      const failing = store.transaction(async (inside) => {
        await inside.codebases.insert(aCodebase())
        await inside.transaction(async (nested) => {
          expect(nested).toBe(inside)
          await nested.environments.insert(anEnvironment('a'), undefined)
          await nested.environments.addAlias(anEnvironment('a').id, aCodebase().id, { type: 'pr', id: '1' }, 1)
        })
        throw new Error('no')
      })
      await expect(failing).rejects.toThrow('no')
      expect(await store.codebases.list('host-a')).toEqual([])
      expect(await store.codebases.insert(aCodebase())).toBe(true)
    })

    test('goes on after a conflict inside it', async () => {
      const store = await engine.open(await engine.fresh())
      await store.transaction(async (inside) => {
        await inside.codebases.insert(aCodebase())
        expect(await inside.codebases.insert(aCodebase())).toBe(false)
        await inside.environments.insert(anEnvironment('a'), undefined)
        const again = anEnvironment('b', { path: anEnvironment('a').path })
        expect(await inside.environments.insert(again, undefined)).toEqual({ outcome: 'conflict', on: 'path' })
      })
      expect(await store.environments.live(aCodebase().id)).toHaveLength(1)
    })

    test('is not entered by other work of the same process, which waits or does not see it', async () => {
      const store = await engine.open(await engine.fresh())
      const inserted = Promise.withResolvers<void>()
      const finish = Promise.withResolvers<void>()
      const failing = store.transaction(async (inside) => {
        await inside.codebases.insert(aCodebase())
        inserted.resolve()
        await finish.promise
        throw new Error('no')
      })
      await inserted.promise
      const seen = store.codebases.list('host-a')
      finish.resolve()
      await expect(failing).rejects.toThrow('no')
      expect(await seen).toEqual([])
    })

    test('that waits for the outer store ends with an error, not in silence', async () => {
      const store = await engine.open(await engine.fresh(), { turn: 50, wait: 200 })
      const waiting = store.transaction(async (inside) => {
        await inside.codebases.insert(aCodebase())
        await store.codebases.insert(aCodebase())
      })
      await expect(waiting).rejects.toThrow(engine.name === 'sqlite' ? /hasn't finished for 0.05 s/ : /lock timeout/)
      expect(await store.codebases.list('host-a')).toEqual([])
    })
  })

  describe('closing', () => {
    test('waits for what is running', async () => {
      const target = await engine.fresh()
      const store = await engine.open(target)
      const begun = Promise.withResolvers<void>()
      const working = store.transaction(async (inside) => {
        begun.resolve()
        await inside.codebases.insert(aCodebase())
      })
      await begun.promise
      await Promise.all([working, store.close()])
      const again = await engine.open(target)
      expect(await again.codebases.list('host-a')).toHaveLength(1)
    })

    test('notices a connection that was never given back', async () => {
      const { database } = await engine.open(await engine.fresh(), { turn: 50, wait: 50 })
      expect(database.inUse()).toBe(0)
      const leak = Promise.withResolvers<void>()
      const taken = Promise.withResolvers<void>()
      const holding = database.db.connection().execute(async () => {
        taken.resolve()
        await leak.promise
      })
      await taken.promise
      expect(database.inUse()).toBe(1)
      await expect(database.close()).rejects.toMatchObject({ code: 'store-failed' })
      leak.resolve()
      await holding
      expect(database.inUse()).toBe(0)
    })

    test('makes later use an error', async () => {
      const store = await engine.open(await engine.fresh())
      await store.close()
      await expect(store.codebases.list('host-a')).rejects.toThrow(/destroyed|closed/)
    })
  })

  test('a database that a newer version wrote is refused with a sentence and left alone', async () => {
    const target = await engine.fresh()
    const store = await engine.open(target)
    await store.database.db.insertInto('migrations').values({ number: 9999, name: 'from-the-future' }).execute()
    await expect(engine.open(target)).rejects.toMatchObject({
      code: 'store-failed',
      message: expect.stringContaining('newer version') as string,
    })
    expect(await store.codebases.insert(aCodebase())).toBe(true)
  })
})

test('migrations are numbered from 1 without gaps, up to the number that a start compares with', () => {
  expect(migrations.map(({ number }) => number)).toEqual(Array.from({ length: newestMigration }, (_, i) => i + 1))
})

import { setImmediate as others } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { fromStoredFields, toStoredFields } from '../../src/domain/fleet/event-record.ts'
import type { FleetEvent } from '../../src/domain/fleet/event.ts'
import type { NewEvent } from '../../src/store/events.ts'
import type { Store } from '../../src/store/store.ts'
import { onEachEngine } from '../helpers/store-engines.ts'
import { aCodebase } from '../helpers/store-values.ts'
import { aNewItem } from '../helpers/fleet-values.ts'

const item = { id: 7, title: 'Fix login' }

const anEvent = (id: string, change: Partial<NewEvent> = {}): NewEvent => ({
  id,
  at: 1,
  kind: 'landed',
  codebaseId: undefined,
  codebase: 'app',
  itemId: 7,
  agent: undefined,
  fields: { item },
  ...change,
})

const record = (store: Store, ...ids: string[]): Promise<void> =>
  store.transaction(async (inside) => {
    for (const id of ids) await inside.events.record(anEvent(id))
  })

const numbersAfter = async ({ events }: Store, after: number): Promise<number[]> =>
  (await events.page({ after, limit: 1_000 })).map(({ number }) => number)

onEachEngine((engine) => {
  /** SQLite has one writer at a time, so the second one waits for the first. */
  const untilOvertaken = async (overtaken: Promise<void>): Promise<void> => {
    if (engine.name === 'postgres') await overtaken
  }

  describe('events of the fleet', () => {
    test('are numbered from 1 without gaps, also after a transaction that failed, and read back typed', async () => {
      const store = await engine.open(await engine.fresh())
      expect(await store.events.latest()).toBe(0)
      await record(store, 'a', 'b')
      const failing = store.transaction(async (inside) => {
        await inside.events.record(anEvent('lost'))
        throw new Error('no')
      })
      await expect(failing).rejects.toThrow('no')
      await store.events.record(
        anEvent('c', { kind: 'crashed', agent: 'alder', fields: { agent: 'alder', restarts: 1 } }),
      )
      expect(await store.events.latest()).toBe(3)
      expect(await numbersAfter(store, 0)).toEqual([1, 2, 3])
      const [landed] = await store.events.page({ after: 1, limit: 1 })
      expect(landed).toStrictEqual({
        number: 2,
        at: 1,
        kind: 'landed',
        itemId: 7,
        agent: undefined,
        codebase: 'app',
        event: { kind: 'landed', item },
      })
      expect((await store.events.page({ before: 3, limit: 1 })).map(({ number }) => number)).toEqual([2])
      expect(await store.events.latestOfItem(7)).toMatchObject({ number: 3, kind: 'crashed' })
      expect(await store.events.latestOfItem(8)).toBeUndefined()
    })

    test('of a kind that only a later version knows keep their place', async () => {
      const store = await engine.open(await engine.fresh())
      await store.events.record(anEvent('a', { kind: 'teleported', agent: 'alder', fields: { where: 'Mars' } }))
      await store.events.record(anEvent('b', { kind: 'parked', fields: { item, reason: { kind: 'bored' } } }))
      await record(store, 'c')
      const read = await store.events.page({ after: 0, limit: 9 })
      expect(read.map(({ number, kind, event }) => [number, kind, event?.kind])).toEqual([
        [1, 'teleported', undefined],
        [2, 'parked', undefined],
        [3, 'landed', 'landed'],
      ])
      expect(read[0]).toMatchObject({ itemId: 7, agent: 'alder', codebase: 'app' })
    })

    test('reports of cleanup have no number; both are deleted by age', async () => {
      const store = await engine.open(await engine.fresh())
      const report = { kind: 'cleanup', codebaseId: undefined, environmentId: undefined, data: {} }
      await store.events.append({ ...report, id: 'old', at: 1 })
      await store.events.append({ ...report, id: 'new', at: 9 })
      await store.events.record(anEvent('a', { at: 1 }))
      await store.events.record(anEvent('b', { at: 9 }))
      expect(await numbersAfter(store, 0)).toEqual([1, 2])
      expect(await store.events.deleteBefore(9)).toBe(2)
      expect(await numbersAfter(store, 0)).toEqual([2])
      expect((await store.events.recent({ kind: 'cleanup', limit: 9 })).map(({ id }) => id)).toEqual(['new'])
      await record(store, 'c')
      expect(await numbersAfter(store, 0)).toEqual([2, 3])
    })

    test('are told to listeners once they can be read, and not if the transaction failed', async () => {
      const store = await engine.open(await engine.fresh())
      const told: number[] = []
      const end = store.events.onRecorded((first) => told.push(first))
      await store.transaction(async (inside) => {
        await inside.events.record(anEvent('a'))
        await inside.transaction((nested) => nested.events.record(anEvent('b')))
        expect(told).toEqual([])
      })
      await store.transaction(async (inside) => inside.codebases.insert(aCodebase()))
      expect(told).toEqual([1])
      await record(store, 'c')
      end()
      await record(store, 'd')
      expect(told).toEqual([1, 3])
    })

    test('a follower who reads on from the last number misses none of many concurrent writers', async () => {
      const target = await engine.fresh()
      const writers = await Promise.all(Array.from({ length: 3 }, () => engine.open(target)))
      const follower = await engine.open(target)
      const each = engine.name === 'postgres' ? 40 : 15
      let writing = true
      const seen: number[] = []
      const failures: string[] = []
      const follow = async (): Promise<void> => {
        for (let isLast = false; !isLast;) {
          isLast = !writing
          seen.push(...(await numbersAfter(follower, seen.at(-1) ?? 0)))
          await others()
        }
      }
      const write = async (store: Store, name: string): Promise<void> => {
        for (let i = 0; i < each; i += 1) {
          await store
            .transaction(async (inside) => {
              await inside.events.record(anEvent(`${name}-${i}-a`))
              // Others overtake this transaction here.
              for (let turn = 0; turn < i % 4; turn += 1) await others()
              await inside.codebases.list('host-a')
              await inside.events.record(anEvent(`${name}-${i}-b`))
              if (i % 5 === 4) throw new Error('rolled back')
            })
            .catch((error: Error) => void failures.push(error.message))
        }
      }
      const following = follow()
      await Promise.all(writers.flatMap((store, w) => ['x', 'y'].map((name) => write(store, `${name}${w}`))))
      writing = false
      await following
      expect(new Set(failures)).toEqual(new Set(['rolled back']))
      const all = 6 * 2 * each * (4 / 5)
      expect(seen).toEqual(Array.from({ length: all }, (_, i) => i + 1))
    })

    test('are numbered last of all, so that nobody waits for a number while others wait for them', async () => {
      const target = await engine.fresh()
      const [one, other] = [await engine.open(target), await engine.open(target)]
      await one.codebases.insert(aCodebase())
      const recorded = Promise.withResolvers<void>()
      const locked = Promise.withResolvers<void>()
      const first = one.transaction(async (inside) => {
        await inside.events.record(anEvent('a'))
        recorded.resolve()
        await untilOvertaken(locked.promise)
        await inside.items.insert(aNewItem('one'))
      })
      await recorded.promise
      const second = other.transaction(async (inside) => {
        await inside.items.insert(aNewItem('two'))
        locked.resolve()
        await inside.events.record(anEvent('b'))
      })
      await Promise.all([first, second])
      expect(await numbersAfter(one, 0)).toEqual([1, 2])
    })
  })

  describe('hooks', () => {
    const ours = { pid: 7, startTime: 'seven' }
    const theirs = { pid: 8, startTime: 'eight' }

    test('start where they are told to the first time, and keep their position', async () => {
      const { hooks } = await engine.open(await engine.fresh())
      const fresh = { key: 'k', position: 5, attempts: 0, nextAttemptAt: 0, failure: undefined, holder: undefined }
      expect(await hooks.ensure('h', 'k', 5)).toStrictEqual(fresh)
      expect(await hooks.claim('h', 'k', undefined, ours)).toBe(true)
      const failed = { attempts: 2, nextAttemptAt: 90, failure: { at: 80, error: 'status 500' } }
      expect(await hooks.update('h', 'k', ours, failed)).toBe(true)
      expect(await hooks.ensure('h', 'k', 9)).toStrictEqual({ ...fresh, ...failed, holder: ours })
      await hooks.update('h', 'k', ours, { position: 6, attempts: 0, failure: undefined })
      expect(await hooks.list('h')).toEqual([{ ...fresh, position: 6, nextAttemptAt: 90, holder: ours }])
      await hooks.ensure('h', 'other', 0)
      await hooks.ensure('elsewhere', 'other', 0)
      await hooks.keepOnly('h', ['k'])
      expect((await hooks.list('h')).map(({ key }) => key)).toEqual(['k'])
      await hooks.keepOnly('h', [])
      expect(await hooks.list('h')).toEqual([])
      expect(await hooks.list('elsewhere')).toHaveLength(1)
    })

    test('belong to one process at a time, which alone changes them', async () => {
      const { hooks } = await engine.open(await engine.fresh())
      await hooks.ensure('h', 'k', 0)
      expect(await hooks.update('h', 'k', ours, { position: 1 })).toBe(false)
      const claims = await Promise.all([ours, theirs].map((one) => hooks.claim('h', 'k', undefined, one)))
      expect(claims.filter(Boolean)).toHaveLength(1)
      const [holder, loser] = claims[0] === true ? [ours, theirs] : [theirs, ours]
      expect(await hooks.update('h', 'k', loser, { position: 1 })).toBe(false)
      expect(await hooks.claim('h', 'k', loser, undefined)).toBe(false)
      expect(await hooks.claim('h', 'k', holder, loser)).toBe(true)
      expect(await hooks.update('h', 'k', holder, { position: 1 })).toBe(false)
      expect(await hooks.claim('h', 'k', loser, undefined)).toBe(true)
      expect(await hooks.list('h')).toMatchObject([{ position: 0, holder: undefined }])
    })
  })
})

describe('the stored form of an event', () => {
  const whole = (event: FleetEvent): unknown =>
    fromStoredFields(event.kind, JSON.parse(JSON.stringify(toStoredFields(event, hidden))))
  const hidden = (text: string): string => text.replaceAll('hunter2', '***')

  test('has no secret, and is limited in size', () => {
    const noted = { kind: 'asked', note: `the password is hunter2 ${'x'.repeat(10_000)}` } as const
    const stored = whole({ kind: 'parked', item: { ...aNewItem('use hunter2'), id: 7 } as never, reason: noted })
    expect(stored).toMatchObject({ item: { id: 7, title: 'use ***' }, reason: { kind: 'asked' } })
    expect(JSON.stringify(stored)).not.toContain('hunter2')
    expect(JSON.stringify(stored).length).toBeLessThan(4_200)
    const paths = Array.from({ length: 10_000 }, (_, i) => `hunter2-${i}`)
    const conflict = { kind: 'sent-back', agent: 'alder', landing: 3, why: { kind: 'conflict', paths } } as const
    expect(whole({ ...conflict, item: aNewItem('x') as never })).toBeUndefined()
    const sent = whole({ ...conflict, item: { ...aNewItem('x'), id: 7 } as never })
    expect(sent).toMatchObject({ why: { paths: expect.arrayContaining(['***-0']) as string[] } })
    expect(JSON.stringify(sent).length).toBeLessThan(2_000)
  })

  test('is checked when it is read: what is not as this version wrote it is not passed on', () => {
    expect(fromStoredFields('landed', { item })).toEqual({ kind: 'landed', item })
    for (const fields of [undefined, null, 'x', [], {}, { item: 7 }, { item: { id: '7', title: 'x' } }]) {
      expect(fromStoredFields('landed', fields)).toBeUndefined()
    }
    expect(fromStoredFields('constructor', { item })).toBeUndefined()
    expect(fromStoredFields('landed', { item, kind: 'parked' })).toEqual({ kind: 'landed', item })
  })
})

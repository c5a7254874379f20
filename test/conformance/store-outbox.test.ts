import { describe, expect, test } from 'vitest'
import { createMemory } from '../../src/platforms/memory.ts'
import type { Store } from '../../src/store/store.ts'
import { type EngineUnderTest, onEachEngine } from '../helpers/store-engines.ts'
import { aReply, type AReply } from '../helpers/store-values.ts'

const start = async (engine: EngineUnderTest): Promise<Store> => engine.open(await engine.fresh())

const said = (conversationId: string, key: string, change: Partial<AReply> = {}): AReply =>
  aReply(key, { conversationId, ...change })

const due = async ({ outbox }: Store, now = 100, limit = 99, platforms = ['slack', 'web']): Promise<string[]> =>
  (await outbox.due(platforms, now, limit, 1_000)).map(({ key }) => key)

const sent = ({ outbox }: Store, key: string, at = 100): Promise<void> =>
  outbox.update(`reply-${key}`, { state: 'sent', sentAt: at })

onEachEngine((engine) => {
  describe('replies', () => {
    test('come back as they were put in, and are patched: an absent key leaves alone, an undefined one clears', async () => {
      const { outbox } = await start(engine)
      const actions = [{ label: 'Stop', command: '/stop', style: 'danger' }] as const
      const one = aReply('a', { inboxId: 'message-a', role: 'system', text: 'ünd\n', actions })
      expect(await outbox.append([one, aReply('b')])).toEqual(new Set(['reply-a', 'reply-b']))
      const added = { state: 'waiting', attempts: 0, sentParts: 0, sentAt: undefined, error: undefined }
      expect(await outbox.get('reply-a')).toStrictEqual({ ...one, ...added })
      expect(await outbox.get('reply-b')).toStrictEqual({ ...aReply('b'), ...added })
      expect(await outbox.get('nobody')).toBeUndefined()
      const tried = { attempts: 2, sentParts: 1, nextAttemptAt: 500, error: 'the platform is away' }
      await outbox.update('reply-a', tried)
      await outbox.update('reply-a', {})
      expect(await outbox.get('reply-a')).toStrictEqual({ ...one, ...added, ...tried })
      await outbox.update('reply-a', { state: 'sent', sentAt: 600, error: undefined })
      const after = { ...one, ...added, ...tried, state: 'sent', sentAt: 600, error: undefined }
      expect(await outbox.get('reply-a')).toStrictEqual(after)
      expect(await outbox.append([])).toEqual(new Set())
    })

    test('are said once per message and key, however often the message is run; without a message always', async () => {
      const store = await start(engine)
      const { outbox } = store
      const of = (id: string, inboxId: string | undefined, key: string) => aReply(key, { id, inboxId })
      expect(await outbox.append([of('1', 'm', 'k'), of('2', 'm', 'k'), of('3', 'm', 'l')])).toEqual(
        new Set(['1', '3']),
      )
      await outbox.update('1', { state: 'sent', sentAt: 1 })
      expect(await outbox.append([of('4', 'm', 'k'), of('5', 'n', 'k')])).toEqual(new Set(['5']))
      expect(await outbox.append([of('6', undefined, 'k'), of('7', undefined, 'k')])).toEqual(new Set(['6', '7']))
      // An id that is taken is a fault, not something that was said already.
      await expect(outbox.append([of('6', undefined, 'other')])).rejects.toThrow(/unique/i)
      const answers = await Promise.all(['x', 'y', 'z'].map((id) => outbox.append([of(id, 'm', 'at once')])))
      expect(answers.filter((fresh) => fresh.size === 1)).toHaveLength(1)
    })

    test('are due one per conversation, the first that waits; nothing overtakes it', async () => {
      const store = await start(engine)
      await store.outbox.append([said('x', 'x1', { nextAttemptAt: 200 }), said('x', 'x2'), said('y', 'y1')])
      await store.outbox.append([said('x', 'other-x1', { platform: 'web' }), said('y', 'y2')])
      expect(await due(store)).toEqual(['y1', 'other-x1'])
      expect(await due(store, 99)).toEqual([])
      expect(await due(store, 200)).toEqual(['x1', 'y1', 'other-x1'])
      expect(await due(store, 200, 2)).toEqual(['x1', 'y1'])
      expect(await due(store, 200, 9, ['web'])).toEqual(['other-x1'])
      expect(await due(store, 200, 9, [])).toEqual([])
      // A clock that was set back must not delay them.
      expect(await due(store, -900, 9, ['slack'])).toEqual(['x1'])
      expect(await due(store, -901, 9, ['slack'])).toEqual(['x1', 'y1'])
      await sent(store, 'y1')
      expect(await due(store)).toEqual(['other-x1', 'y2'])
      // One that failed for good no longer stands in the way.
      await store.outbox.update('reply-x1', { state: 'failed', error: 'no such thread' })
      expect(await due(store)).toEqual(['x2', 'other-x1', 'y2'])
    })

    test('say when the next of them is due', async () => {
      const store = await start(engine)
      const { outbox } = store
      expect(await outbox.nextDueAt(['slack', 'web'])).toBeUndefined()
      await outbox.append([said('x', 'x1', { nextAttemptAt: 300 }), said('x', 'x2', { nextAttemptAt: 1 })])
      await outbox.append([
        said('y', 'y1', { nextAttemptAt: 400 }),
        said('z', 'z1', { platform: 'web', nextAttemptAt: 9 }),
      ])
      // Not 1: that one stands behind another.
      expect(await outbox.nextDueAt(['slack'])).toBe(300)
      expect(await outbox.nextDueAt(['slack', 'web'])).toBe(9)
      expect(await outbox.nextDueAt(['discord'])).toBeUndefined()
      expect(await outbox.nextDueAt([])).toBeUndefined()
      await sent(store, 'x1')
      expect(await outbox.nextDueAt(['slack'])).toBe(1)
    })

    test('keep the order in which they were appended, also within one millisecond and more than a statement holds', async () => {
      const { outbox } = await start(engine)
      const keys = Array.from({ length: 1200 }, (_, index) => `k${(index * 7) % 1200}`)
      expect((await outbox.append(keys.map((key) => aReply(key)))).size).toBe(1200)
      const thread = { platform: 'slack', conversationId: 'thread' }
      expect((await outbox.ofConversation(thread, 2000)).map(({ key }) => key)).toEqual(keys)
      expect((await outbox.ofConversation(thread, 3)).map(({ key }) => key)).toEqual(keys.slice(-3))
      expect(await outbox.ofConversation({ ...thread, platform: 'web' }, 9)).toEqual([])
    })

    test('are counted, and forgotten once they were sent long ago', async () => {
      const store = await start(engine)
      await store.outbox.append(['a', 'b', 'c', 'd'].map((key) => aReply(key)))
      await sent(store, 'a', 10)
      await sent(store, 'b', 20)
      await store.outbox.update('reply-c', { state: 'failed', error: 'no' })
      expect(await store.outbox.counts()).toStrictEqual({ waiting: 1, failed: 1 })
      expect(await store.outbox.deleteSent(20)).toBe(1)
      expect(await store.outbox.deleteSent(1000)).toBe(1)
      expect(await store.outbox.counts()).toEqual({ waiting: 1, failed: 1 })
    })

    test('and the message they answer are one: both are recorded or neither', async () => {
      const store = await start(engine)
      const failed = store.transaction(async ({ outbox }) => {
        await outbox.append([aReply('a')])
        throw new Error('no')
      })
      await expect(failed).rejects.toThrow('no')
      expect(await store.outbox.get('reply-a')).toBeUndefined()
    })
  })

  test('a platform keeps values of its own, and does a thing once in a while', async () => {
    const store = await start(engine)
    const slack = createMemory('slack', { store, clock: () => now })
    const web = createMemory('web', { store, clock: () => now })
    let now = 1_000
    await slack.set('cursor', 'a')
    await slack.set('cursor', 'b')
    await web.set('cursor', 'c')
    expect([await slack.get('cursor'), await web.get('cursor'), await web.get('other')]).toEqual(['b', 'c', undefined])
    const told = async (at: number): Promise<boolean> => {
      now = at
      return slack.once('told:U1', 100)
    }
    expect([await told(1_000), await told(1_099), await told(1_100), await told(1_199)]).toEqual([
      true,
      false,
      true,
      false,
    ])
    expect((await Promise.all([1, 2, 3].map(() => web.once('told:U1', 100)))).filter(Boolean)).toHaveLength(1)
    await store.platformMemory.deleteBefore(1_100)
    expect([await slack.get('cursor'), await slack.once('told:U1', 100)]).toEqual([undefined, false])
  })
})

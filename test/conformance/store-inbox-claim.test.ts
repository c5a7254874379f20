import { setImmediate as others } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { ClaimRequest, InboxMessage, Store } from '../../src/store/store.ts'
import { type EngineUnderTest, onEachEngine } from '../helpers/store-engines.ts'
import { aHolder, aMessage } from '../helpers/store-values.ts'

const me = aHolder(1)

const start = async (engine: EngineUnderTest): Promise<Store> => engine.open(await engine.fresh())

/** The key of what was claimed. */
const next = async ({ inbox }: Store, request: Partial<ClaimRequest> = {}): Promise<string | undefined> =>
  (await inbox.claim({ lane: 'turn', holder: me, ...request }))?.id.replace('message-', '')

const done = (store: Store, key: string): Promise<boolean> =>
  store.inbox.transition(`message-${key}`, 'running', 'done', me)

onEachEngine((engine) => {
  describe('claiming', () => {
    test('takes the oldest of each conversation, one at a time, in the order of acceptance', async () => {
      const store = await start(engine)
      await store.inbox.accept([aMessage('x1', { conversationId: 'x' }), aMessage('x2', { conversationId: 'x' })])
      await store.inbox.accept([aMessage('y1', { conversationId: 'y' })])
      await store.inbox.accept([aMessage('x3', { conversationId: 'x' })])
      expect(await next(store)).toBe('x1')
      expect(await next(store)).toBe('y1')
      expect(await next(store)).toBeUndefined()
      await done(store, 'x1')
      expect(await next(store)).toBe('x2')
      expect(await next(store)).toBeUndefined()
      await done(store, 'x2')
      await done(store, 'y1')
      expect(await next(store)).toBe('x3')
      await done(store, 'x3')
      expect(await next(store)).toBeUndefined()
      // A line that was empty begins anew.
      await store.inbox.accept([aMessage('x4', { conversationId: 'x' })])
      expect(await next(store)).toBe('x4')
    })

    test('gives one that was put back before those that came after it', async () => {
      const store = await start(engine)
      await store.inbox.accept([aMessage('a'), aMessage('b')])
      expect(await next(store)).toBe('a')
      await store.inbox.transition('message-a', 'running', 'waiting', me)
      await store.inbox.accept([aMessage('c')])
      for (const key of ['a', 'b', 'c']) {
        expect(await next(store)).toBe(key)
        await done(store, key)
      }
    })

    test('goes on past one that was given up, first in line or not', async () => {
      const store = await start(engine)
      await store.inbox.accept(['a', 'b', 'c', 'd'].map((key) => aMessage(key)))
      expect(await store.inbox.transition('message-c', 'waiting', 'done')).toBe(true)
      expect(await store.inbox.transition('message-a', 'waiting', 'done')).toBe(true)
      expect(await next(store)).toBe('b')
      expect(await next(store)).toBeUndefined()
      await done(store, 'b')
      expect(await next(store)).toBe('d')
    })

    test('in the lane `at-once` waits for nobody, and its lane’s messages are never taken for the other', async () => {
      const store = await start(engine)
      await store.inbox.accept([aMessage('stop', { lane: 'at-once' }), aMessage('a'), aMessage('b')])
      expect(await next(store)).toBe('a')
      await store.inbox.accept([aMessage('status', { lane: 'at-once' })])
      expect(await next(store, { lane: 'at-once' })).toBe('stop')
      expect(await next(store, { lane: 'at-once' })).toBe('status')
      expect(await next(store, { lane: 'at-once' })).toBeUndefined()
      // What does not wait its turn does not give the turn on either.
      await done(store, 'stop')
      expect(await next(store)).toBeUndefined()
      await store.inbox.transition('message-status', 'running', 'waiting', me)
      expect(await next(store, { lane: 'at-once' })).toBe('status')
      await done(store, 'a')
      expect(await next(store)).toBe('b')
    })

    test('is kept to one conversation or to some platforms on request', async () => {
      const store = await start(engine)
      const on = (platform: string, key: string, lane: 'turn' | 'at-once' = 'turn') =>
        aMessage(key, { platform, conversationId: key[0] ?? '', lane })
      await store.inbox.accept([on('cli', 'a1'), on('cli', 'b1'), on('cli', 'b2'), on('web', 'b3'), on('slack', 'd1')])
      await store.inbox.accept([on('cli', 'a9', 'at-once'), on('cli', 'b9', 'at-once')])
      const b = { platform: 'cli', conversationId: 'b' }
      expect(await next(store, { platforms: [] })).toBeUndefined()
      expect(await next(store, { platforms: ['telegram'] })).toBeUndefined()
      expect(await next(store, { platforms: ['web', 'slack'], conversation: b })).toBeUndefined()
      expect(await next(store, { conversation: b })).toBe('b1')
      expect(await next(store, { conversation: b })).toBeUndefined()
      expect(await next(store, { conversation: b, lane: 'at-once' })).toBe('b9')
      // The same id on another platform is another conversation.
      expect(await next(store, { platforms: ['slack', 'web'] })).toBe('b3')
      expect(await next(store, { platforms: ['slack', 'web'] })).toBe('d1')
      expect(await next(store, { platforms: ['slack', 'web'] })).toBeUndefined()
      await done(store, 'b1')
      expect(await next(store, { conversation: b })).toBe('b2')
      expect(await next(store)).toBe('a1')
    })

    test('by many at once over two connections takes each once, one at a time per conversation, in order', async () => {
      const target = await engine.fresh()
      const stores = [await engine.open(target), await engine.open(target)]
      const messages = Array.from({ length: 200 }, (_, index) =>
        aMessage(String(index).padStart(3, '0'), { conversationId: `t${index % 20}` }),
      )
      await stores[0]?.inbox.accept(messages)
      const began = await workOff([...stores, ...stores, ...stores])
      expect(began.map(({ id }) => id).toSorted()).toEqual(messages.map(({ id }) => id))
      expect(began.every(({ attempts }) => attempts === 1)).toBe(true)
      expectInOrder(began)
    })

    test('loses none that is accepted at the very moment when the one before it is done', async () => {
      const target = await engine.fresh()
      const [left, right] = [await engine.open(target), await engine.open(target)]
      let accepted = 0
      const accepting = async (conversationId: string): Promise<void> => {
        for (let index = 0; index < 60; index += 1) {
          const key = `${conversationId}-${String(index).padStart(2, '0')}`
          await left.inbox.accept([aMessage(key, { conversationId })])
          accepted += 1
        }
      }
      const all = Promise.all(['p', 'q', 'r'].map(accepting))
      const began = await workOff([right, right, left, right], () => accepted === 180)
      await all
      expect(began).toHaveLength(180)
      expectInOrder(began)
      expect(await left.inbox.counts()).toEqual({ waiting: 0, running: 0 })
    })

    test('never waits for a transaction of somebody else on PostgreSQL, and takes nothing it has not committed', async () => {
      if (engine.name === 'sqlite') return
      const target = await engine.fresh()
      const [left, right] = [await engine.open(target), await engine.open(target, { wait: 500 })]
      await left.inbox.accept([aMessage('a', { conversationId: 'a' }), aMessage('b', { conversationId: 'b' })])
      await left.transaction(async (inside) => {
        expect(await next(inside)).toBe('a')
        await inside.inbox.accept([aMessage('c', { conversationId: 'c' })])
        expect(await next(right)).toBe('b')
        expect(await next(right)).toBeUndefined()
      })
      expect(await next(right)).toBe('c')
    })
  })
})

/** Claims and finishes until nothing is left and `over` says so; answers in which order they began. */
const workOff = async (stores: readonly Store[], over = (): boolean => true): Promise<InboxMessage[]> => {
  const began: InboxMessage[] = []
  const busy = new Set<string>()
  const work = async ({ inbox }: Store, pid: number): Promise<void> => {
    const holder = aHolder(pid)
    const late = performance.now() + 10_000
    while (performance.now() < late) {
      const ended = over()
      const message = await inbox.claim({ lane: 'turn', holder })
      if (message === undefined) {
        const { waiting, running } = await inbox.counts()
        if (ended && waiting + running === 0) return
        // SQLite answers without a pause, and another connection waits for its turn by a timer.
        await others()
        continue
      }
      expect(busy.has(message.conversationId), 'two of one conversation at once').toBe(false)
      busy.add(message.conversationId)
      began.push(message)
      expect((await inbox.get(message.id))?.holder).toEqual(holder)
      busy.delete(message.conversationId)
      expect(await inbox.transition(message.id, 'running', 'done', holder)).toBe(true)
    }
    throw new Error(`stuck with ${JSON.stringify(await inbox.counts())}`)
  }
  await Promise.all(stores.map((store, index) => work(store, index + 1)))
  return began
}

const expectInOrder = (began: readonly InboxMessage[]): void => {
  for (const ofOne of Map.groupBy(began, ({ conversationId }) => conversationId).values()) {
    expect(ofOne.map(({ id }) => id)).toEqual(ofOne.map(({ id }) => id).toSorted())
  }
}

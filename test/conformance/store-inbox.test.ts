import { describe, expect, test } from 'vitest'
import type { Store } from '../../src/store/store.ts'
import { type EngineUnderTest, onEachEngine } from '../helpers/store-engines.ts'
import { aHolder, aMessage } from '../helpers/store-values.ts'

const me = aHolder(1)
const other = aHolder(2)
const agent = { pid: 77, startTime: 'then' }

const start = async (engine: EngineUnderTest): Promise<Store> => engine.open(await engine.fresh())

const ids = (messages: readonly { readonly id: string }[]): string[] => messages.map(({ id }) => id)

onEachEngine((engine) => {
  describe('accepting', () => {
    test('keeps every part of a message, also of one that has all of them', async () => {
      const { inbox } = await start(engine)
      const full = aMessage('full', {
        kind: 'closed',
        text: 'déjà "vu" \n',
        lane: 'at-once',
        details: {
          userId: 'u',
          context: 'earlier',
          codebase: 'one',
          channelId: 'c',
          agent: 'demo',
          hints: { workflowType: 'issue', workflowId: '42' },
        },
      })
      expect(await inbox.accept([aMessage('a'), full])).toEqual(new Set(['message-a', 'message-full']))
      const added = { state: 'waiting', attempts: 0, putBacks: 0, holder: undefined, child: undefined }
      expect(await inbox.get('message-a')).toStrictEqual({ ...aMessage('a'), ...added })
      expect(await inbox.get('message-full')).toStrictEqual({ ...full, ...added })
      expect(await inbox.byDelivery('slack', 'delivery-full')).toStrictEqual({ ...full, ...added })
      expect(await inbox.get('nobody')).toBeUndefined()
      expect(await inbox.byDelivery('discord', 'delivery-full')).toBeUndefined()
      expect(await inbox.accept([])).toEqual(new Set())
    })

    test('skips a delivery that is known, in the same batch, in a later one and when it is done', async () => {
      const { inbox } = await start(engine)
      const again = (id: string) => aMessage('a', { id, text: 'again' })
      expect(await inbox.accept([aMessage('a'), again('x'), aMessage('b')])).toEqual(
        new Set(['message-a', 'message-b']),
      )
      expect(await inbox.accept([again('y'), aMessage('c')])).toEqual(new Set(['message-c']))
      await inbox.transition('message-a', 'waiting', 'done')
      expect(await inbox.accept([again('z')])).toEqual(new Set())
      expect(await inbox.get('y')).toBeUndefined()
      expect((await inbox.byDelivery('slack', 'delivery-a'))?.text).toBe('do a')
      // The same id of another platform is another delivery.
      expect(await inbox.accept([aMessage('a', { id: 'd', platform: 'discord' })])).toEqual(new Set(['d']))
    })

    test('of the same delivery many times at once is one message', async () => {
      const target = await engine.fresh()
      const [left, right] = [await engine.open(target), await engine.open(target)]
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          (index % 2 === 0 ? left : right).inbox.accept([aMessage('a', { id: `m${index}` })]),
        ),
      )
      expect(answers.filter((fresh) => fresh.size === 1)).toHaveLength(1)
      expect(await left.inbox.counts()).toEqual({ waiting: 1, running: 0 })
    })

    test('takes more than one statement can hold, all or none', async () => {
      const { inbox } = await start(engine)
      const many = Array.from({ length: 3000 }, (_, index) => aMessage(`m${index}`, { conversationId: `t${index}` }))
      // An id that is taken is a fault, not a delivery that is known.
      await expect(inbox.accept([...many, aMessage('m0', { deliveryId: 'other' })])).rejects.toThrow(/unique/i)
      expect(await inbox.counts()).toEqual({ waiting: 0, running: 0 })
      expect((await inbox.accept(many)).size).toBe(3000)
      const asked = [...many, { platform: 'slack', conversationId: 'nobody' }]
      expect(await inbox.pending(asked)).toHaveLength(3000)
      // Each is the first of its line.
      expect(ids([await claimed(inbox), await claimed(inbox)])).toEqual(['message-m0', 'message-m1'])
    })

    test('belongs to the transaction it is in', async () => {
      const store = await start(engine)
      const failed = store.transaction(async ({ inbox }) => {
        await inbox.accept([aMessage('a')])
        throw new Error('no')
      })
      await expect(failed).rejects.toThrow('no')
      expect(await store.inbox.get('message-a')).toBeUndefined()
    })
  })

  describe('transitions', () => {
    test('happen once, along the table only, and only a claim makes one running', async () => {
      const { inbox } = await start(engine)
      await inbox.accept([aMessage('a')])
      const illegal = { code: 'illegal-transition' }
      await expect(inbox.transition('message-a', 'done', 'waiting')).rejects.toMatchObject(illegal)
      await expect(inbox.transition('message-a', 'waiting', 'running', me)).rejects.toMatchObject(illegal)
      expect(await inbox.transition('message-a', 'running', 'done')).toBe(false)
      const outcomes = await Promise.all([1, 2, 3].map(() => inbox.transition('message-a', 'waiting', 'done')))
      expect(outcomes.filter(Boolean)).toHaveLength(1)
      expect((await inbox.get('message-a'))?.state).toBe('done')
      expect(await inbox.transition('nobody', 'waiting', 'done')).toBe(false)
    })

    test('from running are the holder’s alone, by host, pid and start time', async () => {
      const { inbox } = await start(engine)
      await inbox.accept([aMessage('a')])
      await inbox.claim({ lane: 'turn', holder: me })
      const strangers = [
        other,
        aHolder(1, { host: 'host-b' }),
        aHolder(1, { process: { pid: 1, startTime: 'an earlier process with this pid' } }),
      ]
      for (const stranger of strangers) {
        expect(await inbox.transition('message-a', 'running', 'done', stranger)).toBe(false)
        expect(await inbox.transition('message-a', 'running', 'waiting', stranger)).toBe(false)
      }
      expect(await inbox.transition('message-a', 'running', 'done', me)).toBe(true)
    })

    test('back to waiting clear the holder and the agent’s process; the next claim counts one more attempt', async () => {
      const { inbox } = await start(engine)
      await inbox.accept([aMessage('a')])
      const first = await inbox.claim({ lane: 'turn', holder: me })
      expect(first).toMatchObject({ state: 'running', attempts: 1, holder: me, child: undefined })
      await inbox.setChild('message-a', agent)
      expect((await inbox.get('message-a'))?.child).toEqual(agent)
      expect(await inbox.transition('message-a', 'running', 'waiting', me)).toBe(true)
      expect(await inbox.get('message-a')).toMatchObject({
        state: 'waiting',
        attempts: 1,
        holder: undefined,
        child: undefined,
      })
      expect(await inbox.claim({ lane: 'turn', holder: other })).toMatchObject({ attempts: 2, holder: other })
    })

    test('name the agent’s process only while it runs, and clear it', async () => {
      const { inbox } = await start(engine)
      await inbox.accept([aMessage('a')])
      await expect(inbox.setChild('message-a', agent)).rejects.toMatchObject({ code: 'store-failed' })
      await inbox.claim({ lane: 'turn', holder: me })
      await inbox.setChild('message-a', agent)
      await inbox.setChild('message-a', undefined)
      expect((await inbox.get('message-a'))?.child).toBeUndefined()
      await inbox.setChild('message-a', agent)
      await inbox.transition('message-a', 'running', 'done', me)
      expect(await inbox.get('message-a')).toMatchObject({ holder: undefined, child: undefined })
      await inbox.setChild('message-a', undefined)
      await expect(inbox.setChild('message-a', agent)).rejects.toMatchObject({ code: 'store-failed' })
    })

    test('and what else is written are one: both happen or neither', async () => {
      const store = await start(engine)
      await store.inbox.accept([aMessage('a'), aMessage('b')])
      await store.inbox.claim({ lane: 'turn', holder: me })
      const failed = store.transaction(async ({ inbox }) => {
        await inbox.transition('message-a', 'running', 'done', me)
        throw new Error('no')
      })
      await expect(failed).rejects.toThrow('no')
      expect((await store.inbox.get('message-a'))?.state).toBe('running')
      expect(await store.inbox.claim({ lane: 'turn', holder: me })).toBeUndefined()
    })
  })

  describe('looking', () => {
    test('says what runs, what has waited for long, and how many', async () => {
      const { inbox } = await start(engine)
      await inbox.accept([
        aMessage('late', { acceptedAt: 30, conversationId: 'x' }),
        aMessage('early', { acceptedAt: 10, conversationId: 'y' }),
        aMessage('middle', { acceptedAt: 20, conversationId: 'z' }),
        aMessage('done', { acceptedAt: 5, conversationId: 'w' }),
      ])
      await inbox.transition('message-done', 'waiting', 'done')
      expect(await inbox.running()).toEqual([])
      expect(ids(await inbox.waiting(31, 9))).toEqual(['message-early', 'message-middle', 'message-late'])
      expect(ids(await inbox.waiting(30, 9))).toEqual(['message-early', 'message-middle'])
      expect(ids(await inbox.waiting(31, 1))).toEqual(['message-early'])
      await inbox.claim({ lane: 'turn', holder: me })
      expect(ids(await inbox.running())).toEqual(['message-late'])
      expect(await inbox.counts()).toStrictEqual({ waiting: 2, running: 1 })
    })

    test('says which conversations have something waiting or running, in either lane', async () => {
      const { inbox } = await start(engine)
      const key = (conversationId: string, platform = 'slack') => ({ platform, conversationId })
      await inbox.accept([
        aMessage('runs', { conversationId: 'runs' }),
        aMessage('waits', { conversationId: 'waits' }),
        aMessage('now', { conversationId: 'now', lane: 'at-once' }),
        aMessage('done', { conversationId: 'done' }),
      ])
      await inbox.claim({ lane: 'turn', holder: me })
      await inbox.transition('message-done', 'waiting', 'done')
      const asked = ['runs', 'waits', 'waits', 'now', 'done', 'nobody'].map((id) => key(id))
      const pending = await inbox.pending([...asked, key('waits', 'discord')])
      expect(pending.map(({ conversationId }) => conversationId).toSorted()).toEqual(['now', 'runs', 'waits'])
      expect(await inbox.pending([])).toEqual([])
    })

    test('says what conversations began with, apart from commands', async () => {
      const { inbox } = await start(engine)
      const said: [string, string, string?][] = [
        ['a', '/status'],
        ['a', 'first'],
        ['a', 'second'],
        ['b', 'other'],
        ['b', '', 'closed'],
        ['c', '/help'],
      ]
      for (const [index, [conversationId, text, kind = 'message']] of said.entries())
        await inbox.accept([
          aMessage(String(index), {
            conversationId,
            text,
            kind: kind as 'message',
            details: conversationId === 'b' ? { title: { text: 'Its title', own: false } } : {},
          }),
        ])
      const keys = ['a', 'b', 'c', 'd', 'a'].map((conversationId) => ({ platform: 'slack', conversationId }))
      const texts = await inbox.firstTexts(keys)
      expect(texts.toSorted((x, y) => (x.conversationId < y.conversationId ? -1 : 1))).toEqual([
        { platform: 'slack', conversationId: 'a', text: 'first', title: undefined },
        { platform: 'slack', conversationId: 'b', text: 'other', title: 'Its title' },
      ])
      expect(await inbox.firstTexts([])).toEqual([])
    })

    test('gives a conversation’s latest messages in the order of acceptance, done ones too', async () => {
      const { inbox } = await start(engine)
      for (const key of ['c', 'a', 'b']) await inbox.accept([aMessage(key)])
      await inbox.accept([aMessage('else', { conversationId: 'other' })])
      await inbox.transition('message-c', 'waiting', 'done')
      const thread = { platform: 'slack', conversationId: 'thread' }
      expect(ids(await inbox.ofConversation(thread, 9))).toEqual(['message-c', 'message-a', 'message-b'])
      expect(ids(await inbox.ofConversation(thread, 2))).toEqual(['message-a', 'message-b'])
    })

    test('forgets what is done and old, and nothing that is open; then the delivery is new again', async () => {
      const { inbox } = await start(engine)
      const of = (key: string, acceptedAt: number) => aMessage(key, { acceptedAt, conversationId: key })
      await inbox.accept([of('runs', 10), of('waits', 10), of('old', 10), of('young', 20)])
      await inbox.claim({ lane: 'turn', holder: me })
      for (const key of ['old', 'young']) await inbox.transition(`message-${key}`, 'waiting', 'done')
      expect(await inbox.deleteDone(20)).toBe(1)
      expect(await inbox.deleteDone(20)).toBe(0)
      expect(await inbox.get('message-old')).toBeUndefined()
      expect(await inbox.counts()).toEqual({ waiting: 1, running: 1 })
      expect(await inbox.accept([of('old', 30), aMessage('young', { id: 'again' })])).toEqual(new Set(['message-old']))
    })
  })
})

const claimed = async (inbox: Store['inbox']) => {
  const message = await inbox.claim({ lane: 'turn', holder: me })
  if (message === undefined) throw new Error('nothing to claim')
  return message
}

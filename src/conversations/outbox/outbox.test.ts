import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openTestStore, type TestStore } from '../../../test/helpers/store.ts'
import { createLogger } from '../../process/log.ts'
import { createChanges } from '../changes.ts'
import { type Delivery, DeliveryError, type OutgoingMessage } from './delivery.ts'
import { createOutbox } from './outbox.ts'

let opened: TestStore
beforeEach(async () => {
  opened = await openTestStore()
})
afterEach(() => opened.close())

const log = createLogger({ write: () => undefined, level: 'error', clock: Date.now, redact: (text) => text })

type Answer = (message: OutgoingMessage) => void

const outboxTo = (answer: Answer, { limit, now }: { limit?: number; now?: () => number } = {}) => {
  const sent: OutgoingMessage[] = []
  const delivery: Delivery = {
    platform: 'test',
    limit,
    send: async (message) => {
      answer(message)
      sent.push(message)
    },
  }
  const outbox = createOutbox({
    store: opened.store,
    deliveries: new Map([['test', delivery]]),
    changes: createChanges(),
    clock: now ?? Date.now,
    log,
    redact: (text) => text,
    failpoint: async () => undefined,
  })
  return { sent, outbox }
}

const record = (conversationId: string, ...texts: string[]): Promise<void> =>
  recordFor('test', conversationId, ...texts)

const recordFor = async (platform: string, conversationId: string, ...texts: string[]): Promise<void> => {
  await opened.store.outbox.append(
    texts.map((text) => ({
      id: randomUUID(),
      platform,
      conversationId,
      inboxId: undefined,
      key: 'reply',
      role: 'agent',
      text,
      nextAttemptAt: 0,
      createdAt: 0,
    })),
  )
}

const deliverAll = async ({ outbox }: ReturnType<typeof outboxTo>): Promise<void> => {
  outbox.kick()
  await outbox.idle()
}

const states = async (conversationId: string): Promise<string[]> =>
  (await opened.store.outbox.ofConversation({ platform: 'test', conversationId }, 100)).map(({ state }) => state)

describe('the outbox', () => {
  test('delivers in order within a conversation', async () => {
    const to = outboxTo(() => undefined)
    await record('a', 'one', 'two', 'three')
    await deliverAll(to)
    expect(to.sent.map(({ text }) => text)).toEqual(['one', 'two', 'three'])
    expect(await states('a')).toEqual(['sent', 'sent', 'sent'])
    await deliverAll(to)
    expect(to.sent).toHaveLength(3)
  })

  test('a reply goes where the message that it answers says, also after a restart', async () => {
    const question = { platform: 'test', conversationId: 'a', lane: 'turn', kind: 'message', text: 'why?' } as const
    const details = { replyTo: 'a thread in it' }
    await opened.store.inbox.accept([{ ...question, id: 'q', deliveryId: 'd', details, acceptedAt: 0 }])
    const said = { platform: 'test', conversationId: 'a', role: 'agent', nextAttemptAt: 0, createdAt: 0 } as const
    await opened.store.outbox.append([
      { ...said, id: 'r', inboxId: 'q', key: 'reply', text: 'because' },
      { ...said, id: 'n', inboxId: undefined, key: 'notice', text: 'by the way' },
    ])
    const to = outboxTo(() => undefined)
    await deliverAll(to)
    expect(to.sent.map(({ text, replyTo }) => [text, replyTo])).toEqual([
      ['because', 'a thread in it'],
      ['by the way', undefined],
    ])
  })

  test('a conversation that cannot be reached keeps its order and does not hold up the others', async () => {
    let time = 1_000
    let down = true
    const answer: Answer = ({ conversationId }) => {
      if (down && conversationId === 'a') throw new Error('socket hang up')
    }
    const to = outboxTo(answer, { now: () => time })
    await record('a', 'one', 'two')
    await record('b', 'other')
    await deliverAll(to)
    expect(to.sent.map(({ text }) => text)).toEqual(['other'])
    expect(await states('a')).toEqual(['waiting', 'waiting'])
    down = false
    await deliverAll(to)
    expect(to.sent.map(({ text }) => text)).toEqual(['other'])
    time += 1_000
    await deliverAll(to)
    expect(to.sent.map(({ text }) => text)).toEqual(['other', 'one', 'two'])
    await to.outbox.stop()
  })

  test('a platform that is slow holds up neither the others nor what comes later', async () => {
    const slow = Promise.withResolvers<void>()
    const sent: string[] = []
    const delivery = (platform: string): Delivery => ({
      platform,
      limit: undefined,
      send: async ({ text }) => {
        if (platform === 'slow') await slow.promise
        sent.push(text)
      },
    })
    const outbox = createOutbox({
      store: opened.store,
      deliveries: new Map(['slow', 'test'].map((name) => [name, delivery(name)])),
      changes: createChanges(),
      clock: Date.now,
      log,
      redact: (text) => text,
      failpoint: async () => undefined,
    })
    await recordFor('slow', 'a', 'late', 'last')
    await record('b', 'one', 'two')
    outbox.kick()
    await expect.poll(() => sent).toEqual(['one', 'two'])
    await record('b', 'three')
    outbox.kick()
    await expect.poll(() => sent).toEqual(['one', 'two', 'three'])
    slow.resolve()
    await outbox.idle()
    expect(sent).toEqual(['one', 'two', 'three', 'late', 'last'])
    await outbox.stop()
  })

  test('waits as long as the platform asks for', async () => {
    let time = 0
    let tries = 0
    const answer: Answer = () => {
      if (tries++ === 0) throw new DeliveryError('unreachable', 'slow down', { retryAfterMs: 30_000 })
    }
    const to = outboxTo(answer, { now: () => time })
    await record('a', 'one')
    await deliverAll(to)
    time = 29_999
    await deliverAll(to)
    expect(tries).toBe(1)
    time = 30_000
    await deliverAll(to)
    expect(to.sent).toHaveLength(1)
    await to.outbox.stop()
  })

  test.each([-30_000, Number.NaN, Number.POSITIVE_INFINITY, 1e15])(
    'a platform that asks to wait %d ms is asked again after at least a second and at most an hour',
    async (retryAfterMs) => {
      let time = 1_000
      let tries = 0
      const answer: Answer = () => {
        if (tries++ === 0) throw new DeliveryError('unreachable', 'slow down', { retryAfterMs })
      }
      const to = outboxTo(answer, { now: () => time })
      await record('a', 'one')
      await deliverAll(to)
      time += 999
      await deliverAll(to)
      expect(tries).toBe(1)
      time += 3_600_000
      await deliverAll(to)
      expect(to.sent).toHaveLength(1)
      await to.outbox.stop()
    },
  )

  test('a clock that is set back delays no reply by the time that it was wrong', async () => {
    const year = 365 * 24 * 60 * 60_000
    let time = 2 * year
    let down = true
    const answer: Answer = () => {
      if (down) throw new Error('socket hang up')
    }
    const to = outboxTo(answer, { now: () => time })
    await record('a', 'one')
    await deliverAll(to)
    down = false
    time -= year
    await deliverAll(to)
    expect(to.sent).toHaveLength(1)
    await to.outbox.stop()
  })

  test('what the platform refuses for good is recorded as failed, and the next one goes out', async () => {
    const to = outboxTo(({ text }) => {
      if (text === 'one') throw new DeliveryError('refused', 'the channel is gone')
    })
    await record('a', 'one', 'two')
    await deliverAll(to)
    expect(to.sent.map(({ text }) => text)).toEqual(['two'])
    expect(await states('a')).toEqual(['failed', 'sent'])
  })

  test('a long reply goes on after the part that was sent, and each part keeps its id', async () => {
    let time = 0
    let failing = true
    const ids: string[] = []
    const answer: Answer = ({ id, part }) => {
      ids.push(id)
      if (part === 2 && failing) throw new Error('connection reset')
    }
    const to = outboxTo(answer, { limit: 40, now: () => time })
    await record('a', 'word '.repeat(20).trim())
    await deliverAll(to)
    expect(to.sent.map(({ part }) => part)).toEqual([1])
    failing = false
    time = 60_000
    await deliverAll(to)
    expect(to.sent.map(({ part }) => part)).toEqual([1, 2, 3])
    expect(to.sent.every(({ parts }) => parts === 3)).toBe(true)
    expect(ids[1]).toBe(ids[2])
    expect(new Set(ids).size).toBe(3)
    await to.outbox.stop()
  })

  test('goes on by itself when the time has come', async () => {
    let tries = 0
    const to = outboxTo(() => {
      if (tries++ === 0) throw new DeliveryError('unreachable', 'not now')
    })
    await record('a', 'one')
    await deliverAll(to)
    await expect.poll(() => to.sent.length).toBe(1)
    await to.outbox.stop()
  })

  test('once stopped it delivers nothing, and what waits stays recorded', async () => {
    const to = outboxTo(() => undefined)
    await to.outbox.stop()
    await record('a', 'one')
    await deliverAll(to)
    expect(to.sent).toEqual([])
    expect(await states('a')).toEqual(['waiting'])
  })
})

import { describe, expect, test } from 'vitest'
import type { Conversation, Store } from '../../src/store/store.ts'
import type { UsageRow } from '../../src/store/usage.ts'
import { type EngineUnderTest, onEachEngine } from '../helpers/store-engines.ts'

const aConversation = (key: string): Conversation => ({
  id: `conversation-${key}`,
  platform: 'slack',
  conversationId: key,
  codebaseId: undefined,
  environmentId: undefined,
  persistent: false,
  agent: undefined,
  lastActivityAt: 1,
  closedAt: undefined,
  createdAt: 1,
})

const start = async (engine: EngineUnderTest): Promise<Store> => {
  const store = await engine.open(await engine.fresh())
  for (const key of ['a', 'b']) await store.conversations.ensure(aConversation(key))
  return store
}

const aRun = (id: string, change: Partial<UsageRow> = {}): UsageRow => ({
  id,
  conversation: 'conversation-a',
  agent: 'claude',
  costMicros: 42_000,
  inputTokens: 10,
  outputTokens: 5,
  turns: 3,
  at: 100,
  ...change,
})

onEachEngine((engine) => {
  describe('usage', () => {
    test('adds up, of a conversation, since a time, and of all', async () => {
      const { usage } = await start(engine)
      expect(await usage.spent({})).toStrictEqual({ micros: 0, turns: 0, runs: 0 })
      await usage.add(aRun('1'))
      await usage.add(aRun('2', { costMicros: undefined, inputTokens: undefined, outputTokens: undefined, turns: 1 }))
      await usage.add(aRun('3', { conversation: 'conversation-b', costMicros: 5_000_000_000_000, at: 200 }))
      expect(await usage.spent({ conversation: 'conversation-a' })).toStrictEqual({ micros: 42_000, turns: 4, runs: 2 })
      expect(await usage.spent({ since: 200 })).toStrictEqual({ micros: 5_000_000_000_000, turns: 3, runs: 1 })
      expect(await usage.spent({ conversation: 'conversation-a', since: 101 })).toMatchObject({ runs: 0 })
      expect(await usage.spent({})).toStrictEqual({ micros: 5_000_000_042_000, turns: 7, runs: 3 })
    })

    test('is recorded with what it is recorded with, or not at all', async () => {
      const store = await start(engine)
      const failing = store.transaction(async (inside) => {
        await inside.usage.add(aRun('1'))
        throw new Error('the reply could not be recorded')
      })
      await expect(failing).rejects.toThrow('the reply could not be recorded')
      expect(await store.usage.spent({})).toMatchObject({ runs: 0 })
    })

    test('is of a conversation that there is, and once', async () => {
      const { usage } = await start(engine)
      await usage.add(aRun('1'))
      await expect(usage.add(aRun('1'))).rejects.toThrow(/unique/i)
      await expect(usage.add(aRun('2', { conversation: 'nobody' }))).rejects.toThrow(/foreign key/i)
    })
  })

  describe('raises of the budget', () => {
    test('add up, and the same one again is the same one', async () => {
      const { usage } = await start(engine)
      const raise = { id: 'r1', conversation: 'conversation-a', micros: 5_000_000, turns: 0, at: 10 }
      expect(await usage.raise(raise)).toBe(true)
      expect(await usage.raise(raise)).toBe(false)
      expect(await usage.raise({ ...raise, id: 'r2', conversation: 'conversation-b', turns: 7, at: 20 })).toBe(true)
      expect(await usage.raised({ conversation: 'conversation-a' })).toStrictEqual({ micros: 5_000_000, turns: 0 })
      expect(await usage.raised({ since: 11 })).toStrictEqual({ micros: 5_000_000, turns: 7 })
      expect(await usage.raised({ since: 21 })).toStrictEqual({ micros: 0, turns: 0 })
    })
  })

  describe('paused messages', () => {
    test('come back whole, in their order, once, to their conversation', async () => {
      const { usage } = await start(engine)
      const paused = (inboxId: string, conversation = 'conversation-a') => ({
        inboxId,
        conversation,
        text: `${inboxId} ünï`,
        details: { userId: 'u', hints: { linkedIssues: [42] } },
        at: 5,
      })
      await usage.pause(paused('z'))
      await usage.pause(paused('a'))
      await usage.pause(paused('a'))
      await usage.pause(paused('m', 'conversation-b'))
      expect(await usage.paused('conversation-a')).toBe(2)
      expect(await usage.takePaused('conversation-a')).toStrictEqual([paused('z'), paused('a')])
      expect(await usage.takePaused('conversation-a')).toStrictEqual([])
      expect(await usage.paused('conversation-b')).toBe(1)
    })
  })
})

import { describe, expect, test } from 'vitest'
import { toCodebaseId } from '../../src/domain/names.ts'
import type { Conversation, Session, Store } from '../../src/store/store.ts'
import { type EngineUnderTest, onEachEngine } from '../helpers/store-engines.ts'
import { aCodebase } from '../helpers/store-values.ts'

const one = toCodebaseId('codebase-one')

const aConversation = (key: string, change: Partial<Conversation> = {}): Conversation => ({
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
  ...change,
})

const aSession = (key: string, change: Partial<Session> = {}): Session => ({
  id: `session-${key}`,
  conversation: 'conversation-c',
  agent: 'demo',
  agentSessionId: undefined,
  directory: '/trees/a',
  startedAt: 10,
  lastUsedAt: 10,
  endedAt: undefined,
  endReason: undefined,
  ...change,
})

const start = async (engine: EngineUnderTest): Promise<Store> => {
  const store = await engine.open(await engine.fresh())
  await store.codebases.insert(aCodebase())
  await store.conversations.ensure(aConversation('c', { codebaseId: one, lastActivityAt: 5 }))
  return store
}

onEachEngine((engine) => {
  describe('conversations', () => {
    test('are found by their own id and keep their agent', async () => {
      const { conversations } = await start(engine)
      const known = aConversation('d', { agent: 'claude' })
      expect(await conversations.ensure(known)).toStrictEqual(known)
      expect(await conversations.get('conversation-d')).toStrictEqual(known)
      expect(await conversations.get('d')).toBeUndefined()
      await conversations.update('conversation-d', { lastActivityAt: 2 })
      expect((await conversations.get('conversation-d'))?.agent).toBe('claude')
      await conversations.update('conversation-d', { agent: undefined })
      expect((await conversations.get('conversation-d'))?.agent).toBeUndefined()
    })

    test('are listed by latest activity, of a platform or a codebase on request', async () => {
      const { conversations } = await start(engine)
      await conversations.ensure(aConversation('old', { lastActivityAt: 2 }))
      await conversations.ensure(aConversation('new', { lastActivityAt: 9, platform: 'web', codebaseId: one }))
      const listed = async (filter: Parameters<typeof conversations.recent>[0]) =>
        (await conversations.recent(filter)).map(({ conversationId }) => conversationId)
      expect(await listed({ limit: 9 })).toEqual(['new', 'c', 'old'])
      expect(await listed({ limit: 2 })).toEqual(['new', 'c'])
      expect(await listed({ limit: 9, platform: 'slack' })).toEqual(['c', 'old'])
      expect(await listed({ limit: 9, codebaseId: one })).toEqual(['new', 'c'])
      expect(await listed({ limit: 9, codebaseId: one, platform: 'slack' })).toEqual(['c'])
    })
  })

  describe('sessions', () => {
    test('come back as they were put in, and learn their agent’s own id', async () => {
      const { sessions } = await start(engine)
      expect(await sessions.live('conversation-c')).toBeUndefined()
      await sessions.start(aSession('a'))
      expect(await sessions.live('conversation-c')).toStrictEqual(aSession('a'))
      await sessions.update('session-a', { agentSessionId: 'theirs' })
      await sessions.update('session-a', { lastUsedAt: 20 })
      await sessions.update('session-a', {})
      expect(await sessions.live('conversation-c')).toStrictEqual(
        aSession('a', { agentSessionId: 'theirs', lastUsedAt: 20 }),
      )
    })

    test('are one per conversation: a new one ends the one before', async () => {
      const { sessions, conversations } = await start(engine)
      await conversations.ensure(aConversation('d'))
      await sessions.start(aSession('a'))
      await sessions.start(aSession('other', { conversation: 'conversation-d' }))
      await sessions.start(aSession('b', { startedAt: 30 }))
      expect((await sessions.live('conversation-c'))?.id).toBe('session-b')
      expect((await sessions.live('conversation-d'))?.id).toBe('session-other')
    })

    test('started at the same time from two connections leave one that lives', async () => {
      const target = await engine.fresh()
      const [left, right] = [await engine.open(target), await engine.open(target)]
      await left.conversations.ensure(aConversation('c'))
      await Promise.all(
        Array.from({ length: 10 }, (_, index) =>
          (index % 2 === 0 ? left : right).sessions.start(aSession(String(index))),
        ),
      )
      expect(await left.sessions.live('conversation-c')).toBeDefined()
      expect(await left.sessions.end('conversation-c', 'reset', 20)).toBe(true)
      expect(await left.sessions.live('conversation-c')).toBeUndefined()
    })

    test('that fail to start leave the one before alive', async () => {
      const { sessions } = await start(engine)
      await sessions.start(aSession('a'))
      await expect(sessions.start(aSession('a', { startedAt: 30 }))).rejects.toThrow(/unique/i)
      expect(await sessions.live('conversation-c')).toStrictEqual(aSession('a'))
    })

    test('end once', async () => {
      const { sessions } = await start(engine)
      expect(await sessions.end('conversation-c', 'reset', 20)).toBe(false)
      await sessions.start(aSession('a'))
      expect(await sessions.end('conversation-c', 'reset', 20)).toBe(true)
      expect(await sessions.end('conversation-c', 'reset', 20)).toBe(false)
      expect(await sessions.live('conversation-c')).toBeUndefined()
    })
  })
})

import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import type { MessageDetails } from '../../src/domain/message.ts'
import { toBranchName, toCodebaseId } from '../../src/domain/names.ts'
import { up as markPersistent } from '../../src/store/migrations/0013-merged-pull-requests.ts'
import { up as addSharing } from '../../src/store/migrations/0014-sharing.ts'
import type { Conversation, Session } from '../../src/store/store.ts'
import { type EngineUnderTest, onEachEngine } from '../helpers/store-engines.ts'
import { aCodebase, aMessage, anEnvironment } from '../helpers/store-values.ts'

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

const start = async (engine: EngineUnderTest): ReturnType<EngineUnderTest['open']> => {
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

    test('imported under another ID are found by it, and renamed once unless the new ID is taken', async () => {
      const { conversations } = await start(engine)
      const known = aConversation('900', { platform: 'discord', importedAs: '900' })
      expect(await conversations.ensure(known)).toStrictEqual(known)
      await conversations.ensure(aConversation('901', { platform: 'discord' }))
      const key = { platform: 'discord', conversationId: '300:900' }
      const renamed = { ...known, ...key }
      expect(await conversations.renameImported(key, '900')).toStrictEqual(renamed)
      expect(await conversations.findImported('discord', '900')).toStrictEqual(renamed)
      expect(await conversations.find('discord', '900')).toBeUndefined()
      // Renamed already, never imported, and on another platform.
      expect(await conversations.renameImported(key, '900')).toBeUndefined()
      expect(await conversations.renameImported({ ...key, conversationId: '300:901' }, '901')).toBeUndefined()
      expect(await conversations.renameImported({ platform: 'slack', conversationId: 'x' }, '900')).toBeUndefined()
      expect(await conversations.findImported('slack', '900')).toBeUndefined()
    })

    test('know the issue or pull request they are about, and what they were told', async () => {
      const { conversations, codebases } = await start(engine)
      const known = aConversation('d', { work: { type: 'issue', id: '42' } })
      expect(await conversations.ensure(known)).toStrictEqual(known)
      await conversations.update('conversation-d', { lastActivityAt: 1 })
      expect(await conversations.get('conversation-d')).toStrictEqual(known)
      await conversations.update('conversation-d', { work: { type: 'pr', id: '7' } })
      expect((await conversations.get('conversation-d'))?.work).toEqual({ type: 'pr', id: '7' })
      // Its first codebase is the one that the number was about; the number of another one is another work.
      await codebases.insert(aCodebase('two'))
      const workIn = async (key: string) => {
        await conversations.update('conversation-d', { codebaseId: toCodebaseId(key) })
        return (await conversations.get('conversation-d'))?.work
      }
      expect(await workIn('codebase-one')).toEqual({ type: 'pr', id: '7' })
      expect(await workIn('codebase-two')).toBeUndefined()
      const told = []
      for (const [id, notice] of [
        ['conversation-d', 'x'],
        ['conversation-d', 'x'],
        ['conversation-d', 'y'],
        ['conversation-c', 'x'],
      ] as const)
        told.push(await conversations.tellOnce(id, notice, 1))
      expect(told).toEqual([true, false, true, true])
      expect(await conversations.wasTold('conversation-d', 'y')).toBe(true)
      expect(await conversations.wasTold('conversation-c', 'y')).toBe(false)
    })

    test('that an earlier version wrote know it from the newest message that says so', async () => {
      const store = await start(engine)
      const talk = { platform: 'slack', conversationId: 'c' }
      const messages: MessageDetails[] = [
        { hints: { workflowType: 'issue', workflowId: '1' } },
        { hints: { workflowType: 'pr', workflowId: '7' } },
        { hints: { workflowType: 'thread', workflowId: 'x' } },
        { context: 'a text with "workflowType" in it' },
      ]
      for (const [index, details] of messages.entries())
        await store.inbox.accept([aMessage(String(index), { ...talk, details })])
      const { db } = store.database
      await sql`drop table told`.execute(db)
      for (const column of ['work_type', 'work_id'])
        await sql`alter table conversations drop column ${sql.ref(column)}`.execute(db)
      await db.transaction().execute(addSharing)
      expect((await store.conversations.find('slack', 'c'))?.work).toEqual({ type: 'pr', id: '7' })
    })

    test('of a persistent platform leave their mark on every environment they were attached to, with the reference', async () => {
      const store = await start(engine)
      const { conversations, environments } = store
      const all = ['made', 'linked', 'undone', 'thread', 'never'].map((branch) =>
        anEnvironment(branch, { branch: toBranchName(branch) }),
      )
      for (const each of all) await environments.insert(each, undefined)
      const [made, linked, undone, thread] = all.map(({ id }) => id)
      const chat = { codebaseId: one, platform: 'telegram', persistent: true, environmentId: made }
      await conversations.ensure(aConversation('chat', chat))
      await conversations.ensure(aConversation('chat', { ...chat, environmentId: undone }))
      await conversations.update('conversation-chat', { environmentId: linked })
      await conversations.update('conversation-chat', { environmentId: undefined })
      await conversations.update('conversation-c', { environmentId: thread })
      const rolledBack = store.transaction(async (inside) => {
        await inside.conversations.update('conversation-chat', { environmentId: undone })
        throw new Error('the machine died')
      })
      await expect(rolledBack).rejects.toThrow('the machine died')
      const marked = (await environments.live(one)).filter(({ persistent }) => persistent)
      expect(marked.map(({ branch }) => branch).toSorted()).toEqual(['linked', 'made'])
      expect(await environments.get(anEnvironment('never').id)).toStrictEqual(all[4])
    })

    test('of a persistent platform mark the environments they made or use when an older database is upgraded', async () => {
      const store = await engine.open(await engine.fresh())
      await store.codebases.insert(aCodebase())
      const by = { made: 'telegram', asked: 'telegram:77', used: 'github', other: 'telegraph', cli: 'cli' }
      for (const [branch, createdBy] of Object.entries(by)) {
        await store.environments.insert(anEnvironment(branch, { branch: toBranchName(branch), createdBy }), undefined)
      }
      const chat = { platform: 'telegram', persistent: true, environmentId: anEnvironment('used').id }
      await store.conversations.ensure(aConversation('chat', chat))
      await store.conversations.ensure(
        aConversation('cli', { platform: 'cli', environmentId: anEnvironment('cli').id }),
      )
      const { db } = store.database
      await db.schema.dropTable('merged_pull_requests').execute()
      await db.schema.alterTable('environments').dropColumn('persistent').execute()
      await db.transaction().execute(markPersistent)
      const marked = (await store.environments.live(one)).filter(({ persistent }) => persistent)
      expect(marked.map(({ branch }) => branch).toSorted()).toEqual(['asked', 'made', 'used'])
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

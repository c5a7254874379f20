import { afterAll, beforeAll, expect, test } from 'vitest'
import { chatContext } from '../../test/helpers/chat.ts'
import { aCodebase } from '../../test/helpers/store-values.ts'
import { makeWorld, type World } from '../../test/helpers/world.ts'
import type { Codebase } from '../domain/environment.ts'
import type { MessageDetails } from '../domain/message.ts'
import type { Conversation } from '../store/store.ts'
import { codebaseFor } from './bind-codebase.ts'

let world: World
let count = 0
beforeAll(async () => {
  world = await makeWorld()
})
afterAll(() => world[Symbol.asyncDispose]())

const register = async (name: string, change: Partial<Codebase> = {}): Promise<Codebase> => {
  const codebase = aCodebase(name, { host: world.context.host, ...change })
  await world.context.store.codebases.insert(codebase)
  return codebase
}

const begin = async (
  conversationId: string,
  codebaseId: Codebase['id'] | undefined,
  more: Partial<Conversation> = {},
): Promise<Conversation> => {
  const times = { lastActivityAt: 1, closedAt: undefined, createdAt: 1 }
  return world.context.store.conversations.ensure({
    id: conversationId,
    platform: 'cli',
    conversationId,
    codebaseId,
    environmentId: undefined,
    persistent: false,
    agent: undefined,
    ...times,
    ...more,
  })
}

/** Where a message with these details is worked on, and what is said about that. */
const boundBy = async (conversationId: string, details: MessageDetails): Promise<{ to: string; said: string[] }> => {
  const context = chatContext(world)
  const { store } = world.context
  const key = { platform: 'cli', conversationId }
  await context.queue.accept({ ...key, deliveryId: `d${count++}`, kind: 'message', text: 'hi', details, lane: 'turn' })
  const message = await context.queue.claim('turn')
  if (message === undefined) throw new Error('nothing was claimed')
  const conversation = await begin(conversationId, undefined)
  const found = await codebaseFor(context, conversation, message)
  await context.queue.finish(message, async () => undefined)
  const after = await store.conversations.get(conversation.id)
  const isRemembered = !('codebase' in found) || after?.codebaseId === found.codebase.id
  return {
    to: !isRemembered ? 'forgotten' : 'codebase' in found ? found.codebase.name : `refused: ${found.refusal}`,
    said: (await store.outbox.ofConversation(key, 10)).map(({ text }) => text),
  }
}

/** The world's `project` is registered throughout, and the only one once `five` is gone. */
const cases: [string, 'none' | 'has' | 'had', MessageDetails, string, string][] = [
  ['takes the only codebase', 'none', {}, 'project', ''],
  ['that has a codebase stays in it', 'has', {}, 'five', ''],
  ['continued from another repository stays, and says so', 'has', { codebase: 'project' }, 'five', 'stays in `five`'],
  ['is moved by name, and says so', 'has', { codebase: 'project', move: true }, 'project', 'Moved this conversation'],
  ['named its own codebase says nothing', 'has', { codebase: 'five', move: true }, 'five', ''],
  ['whose codebase is gone takes no other', 'had', {}, "refused: This conversation's repository, `five`, is", ''],
  ['whose codebase is gone takes no hint', 'had', { codebase: 'project' }, 'refused: .*no longer registered', ''],
  ['whose codebase is gone says where it can go', 'had', {}, 'refused: .*`--codebase <name>`: `project`', ''],
  ['whose codebase is gone is moved by name', 'had', { codebase: 'project', move: true }, 'project', 'Moved this'],
]

test.each(cases)('a conversation %s', async (_what, kind, details, to, said) => {
  const five = await register('five')
  const id = `c${count++}`
  await begin(id, kind === 'none' ? undefined : five.id)
  if (kind !== 'has') await world.context.store.codebases.remove(five.id)
  const found = await boundBy(id, details)
  expect(found.to).toMatch(new RegExp(`^${to}`))
  expect(found.said).toHaveLength(said === '' ? 0 : 1)
  expect(found.said.join()).toContain(said)
  await world.context.store.codebases.remove(five.id)
})

test('a conversation returns to its codebase when that is registered again, and to no other of the same name', async () => {
  const five = await register('five')
  await begin('returns', five.id)
  await world.context.store.codebases.remove(five.id)
  const other = await register('five', { id: aCodebase('other').id })
  expect((await boundBy('returns', { codebase: 'five' })).to).toMatch(/^refused/)
  await world.context.store.codebases.remove(other.id)
  await register('five')
  expect(await boundBy('returns', {})).toEqual({ to: 'five', said: [] })
  await world.context.store.codebases.remove(five.id)
})

test('a conversation whose codebase was unregistered before names were recorded takes no other', async () => {
  await begin('nameless', undefined, { formerCodebase: { id: aCodebase('unknown').id, name: undefined } })
  expect((await boundBy('nameless', {})).to).toMatch(
    /^refused: This conversation's repository is no longer registered\./,
  )
})

test('a new thread takes no other codebase than its channel had, and none of another host', async () => {
  const five = await register('five')
  await begin('channel', five.id)
  await world.context.store.codebases.remove(five.id)
  expect((await boundBy('thread', { channelId: 'channel' })).to).toMatch(/^refused: .*`five`/)
  const far = await register('far', { host: 'another-host' })
  await begin('elsewhere', far.id)
  expect((await boundBy('elsewhere', {})).to).toMatch(/^refused: .*`far`, is on another host/)
})

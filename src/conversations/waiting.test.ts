import { expect, test } from 'vitest'
import type { Agent } from '../agents/agent.ts'
import type { Store } from '../store/store.ts'
import { chatContext } from '../../test/helpers/chat.ts'
import { makeWorld } from '../../test/helpers/world.ts'
import { createConversations } from './conversations.ts'
import { createOutbox } from './outbox/outbox.ts'

test('who waits long is told so once, and is not written to again however often the others are looked at', async () => {
  let now = Date.now()
  await using world = await makeWorld({
    settings: { concurrentConversations: 1 },
    context: { clock: () => now },
  })
  const { isolation, counts } = counted(world.context)
  const held = Promise.withResolvers<void>()
  const called = Promise.withResolvers<void>()
  const agent: Agent = {
    name: 'held',
    availability: async () => ({ state: 'ready', version: undefined }),
    run: async () => {
      called.resolve()
      await held.promise
      return { outcome: 'done', text: 'done' }
    },
  }
  const context = { ...chatContext(world, [agent]), isolation }
  const outbox = createOutbox({ ...context, ...isolation, deliveries: new Map() })
  const conversations = createConversations(context, { outbox })
  await conversations.start()
  try {
    await conversations.accept(message('first'))
    await called.promise
    await conversations.accept(message('second'))
    now += 31_000
    for (let looks = 1; looks <= 3; looks += 1) {
      const before = counts.looks
      now += 1_000
      conversations.wake()
      await expect.poll(() => counts.looks).toBeGreaterThan(before)
    }
    await expect.poll(() => counts.told).toBe(1)
    const said = await world.context.store.outbox.ofConversation({ platform: 'test', conversationId: 'second' }, 10)
    expect(said.map(({ key }) => key)).toEqual(['waiting'])
  } finally {
    held.resolve()
    await conversations.stop(10_000)
  }
  expect(counts.told).toBe(1)
})

const message = (conversationId: string) =>
  ({
    platform: 'test',
    conversationId,
    deliveryId: conversationId,
    kind: 'message',
    text: 'fix the login bug',
    details: { codebase: 'project' },
  }) as const

const counted = <T extends { readonly store: Store }>(context: T) => {
  const { inbox, outbox } = context.store
  const counts = { looks: 0, told: 0 }
  const store: Store = {
    ...context.store,
    inbox: {
      ...inbox,
      waiting: (before, limit) => {
        counts.looks += 1
        return inbox.waiting(before, limit)
      },
    },
    outbox: {
      ...outbox,
      append: (replies) => {
        counts.told += replies.filter(({ key }) => key === 'waiting').length
        return outbox.append(replies)
      },
    },
  }
  return { isolation: { ...context, store }, counts }
}

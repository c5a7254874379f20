import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openTestStore, type TestStore } from '../../test/helpers/store.ts'
import { conversationHistory } from './history.ts'

const key = { platform: 'test', conversationId: 'c' }

let opened: TestStore
beforeEach(async () => {
  opened = await openTestStore()
})
afterEach(() => opened.close())

const ask = async (id: string, at: number, kind: 'message' | 'closed' = 'message'): Promise<void> => {
  const row = {
    ...key,
    id,
    deliveryId: id,
    kind,
    text: kind === 'closed' ? '' : `ask ${id}`,
    details: {},
    lane: 'turn',
  }
  await opened.store.inbox.accept([{ ...row, lane: 'turn' as const, acceptedAt: at }])
}

const answer = async (id: string, to: string | undefined, at: number, sentAt: number | undefined): Promise<void> => {
  const row = { ...key, id, inboxId: to, key: id, role: 'agent' as const, text: `answer ${id}` }
  await opened.store.outbox.append([{ ...row, nextAttemptAt: at, createdAt: at }])
  if (sentAt !== undefined) await opened.store.outbox.update(id, { state: 'sent', sentAt })
}

const texts = async (delivered = false): Promise<string[]> =>
  (await conversationHistory(opened.store, key, { delivered })).map(({ text }) => text)

test('questions and answers are in order of time', async () => {
  await ask('1', 10)
  await ask('2', 20)
  await answer('a', '1', 15, 30)
  await ask('3', 40)
  await answer('b', '2', 41, 42)
  expect(await texts()).toEqual(['ask 1', 'ask 2', 'answer a', 'ask 3', 'answer b'])
})

test('what was not delivered is left out where only that is asked for', async () => {
  await ask('1', 10)
  await answer('a', '1', 15, undefined)
  expect(await texts()).toEqual(['ask 1', 'answer a'])
  expect(await texts(true)).toEqual(['ask 1'])
})

test('an answer comes after its question, whatever a clock that was set back says', async () => {
  await ask('1', 100)
  await ask('2', 110)
  await answer('a', '1', 50, 50)
  await answer('b', '2', 55, 55)
  expect(await texts()).toEqual(['ask 1', 'answer a', 'ask 2', 'answer b'])
})

test('a message that is answered while we read is not shown without its answer', async () => {
  await ask('1', 10)
  const { inbox, outbox } = opened.store
  const meanwhile = async (
    ...asked: Parameters<typeof inbox.ofConversation>
  ): ReturnType<typeof inbox.ofConversation> => {
    // Whoever read the replies beside this has read them by now.
    await setImmediate()
    await answer('a', '1', 15, 15)
    return inbox.ofConversation(...asked)
  }
  const history = await conversationHistory({ inbox: { ...inbox, ofConversation: meanwhile }, outbox }, key)
  expect(history.map(({ text }) => text)).toEqual(['ask 1', 'answer a'])
})

test('a close event is nothing that was said, and other conversations are not shown', async () => {
  await ask('1', 10)
  await ask('2', 20, 'closed')
  const other = { id: 'x', deliveryId: 'x', platform: 'test', conversationId: 'other', kind: 'message' as const }
  await opened.store.inbox.accept([{ ...other, text: 'other', details: {}, lane: 'turn', acceptedAt: 5 }])
  expect(await texts()).toEqual(['ask 1'])
})

import { expect, test } from 'vitest'
import type { ConversationsContext } from './context.ts'
import { askInThread, createQuestions } from './questions.ts'
import type { InboxMessage } from '../store/store.ts'

const message = { id: 'm', platform: 'test', conversationId: 'c', attempts: 1 } as InboxMessage

test('a key in what an agent asks for is in no question', async () => {
  const said: string[] = []
  const append = async (replies: readonly { text: string }[]) => said.push(...replies.map(({ text }) => text))
  const context = {
    isolation: { ids: () => 'r', clock: () => 0, store: { outbox: { append } } },
    queue: { outboxChanged: () => undefined },
    redact: (text: string) => text.replaceAll('the-secret', '[hidden]'),
    platforms: async () => new Map(),
  } as unknown as ConversationsContext
  const questions = createQuestions()
  const ask = askInThread(context, message, {
    questions,
    signal: new AbortController().signal,
    whileWaiting: (wait) => wait(),
  })
  // The key stands across the place where a long question is cut.
  const answer = ask({ agent: 'demo', what: `curl ${'x'.repeat(490)}the-secret` })
  expect(questions.answer(message, true)).toBe('answered')
  expect(await answer).toBe(true)
  expect(said.join('')).not.toContain('the-s')
})

test('a question whose run has ended is not what the next answer is for', async () => {
  const questions = createQuestions()
  const ended = new AbortController()
  const forgotten = questions.ask(message, ended.signal)
  ended.abort('ended')
  expect(await forgotten).toBeUndefined()
  const open = questions.ask(message, new AbortController().signal)
  expect(questions.answer(message, false)).toBe('answered')
  expect(await open).toBe(false)
})

import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { type AgentQuestion, answerIn } from '../agents/question.ts'
import type { ReplyAction } from '../domain/message.ts'
import type { ConversationsContext } from './context.ts'
import { askInThread, createQuestions } from './questions.ts'
import type { InboxMessage } from '../store/store.ts'

const message = { id: 'm', platform: 'test', conversationId: 'c', attempts: 1 } as InboxMessage
const permission = (what: string, detail?: string): AgentQuestion => ({
  kind: 'permission',
  agent: 'demo',
  what,
  ...(detail !== undefined && { detail }),
})
const choice: AgentQuestion = {
  kind: 'choice',
  agent: 'claude',
  question: 'Which database?',
  choices: [{ label: 'SQLite', description: 'one file' }, { label: 'Postgres' }],
  several: false,
}

/** A thread that keeps what it was told. */
const thread = (questionMinutes = 1440) => {
  const said: string[] = []
  const buttons: string[][] = []
  const labels: string[][] = []
  const append = async (replies: readonly { text: string; actions?: readonly ReplyAction[] }[]) => {
    said.push(...replies.map(({ text }) => text))
    buttons.push(...replies.map(({ actions = [] }) => actions.map(({ command }) => command)))
    labels.push(...replies.map(({ actions = [] }) => actions.map(({ label }) => label)))
  }
  const context = {
    isolation: { ids: randomUUID, clock: () => 0, store: { outbox: { append } }, settings: { questionMinutes } },
    queue: { outboxChanged: () => undefined },
    redact: (text: string) => text.replaceAll('the-secret', '[hidden]'),
    platforms: async () => new Map(),
  } as unknown as ConversationsContext
  const questions = createQuestions()
  const stop = new AbortController()
  const ask = askInThread(context, message, { questions, signal: stop.signal, whileWaiting: (wait) => wait() })
  const asked = async (count: number): Promise<void> => {
    await expect.poll(() => said.length).toBe(count)
  }
  return { said, buttons, labels, questions, ask, stop, asked }
}

test('a key in what an agent asks for is in no question', async () => {
  const { said, questions, ask, asked } = thread()
  // The keys stand across the places where a long question and a long command are cut.
  const answer = ask(permission(`curl ${'x'.repeat(490)}the-secret`, `${'y'.repeat(2_995)}the-secret`))
  await asked(1)
  expect(questions.answer(message, { agreed: true })).toMatchObject({ kind: 'answered' })
  expect(await answer).toEqual({ kind: 'allowed' })
  expect(said.join('')).not.toContain('the-s')
})

test('a question whose run has ended is not what the next answer is for', async () => {
  const questions = createQuestions()
  const ended = new AbortController()
  const forgotten = questions.ask(message, permission('one'), ended.signal)
  ended.abort('ended')
  expect(await forgotten).toBeUndefined()
  const open = questions.ask(message, permission('two'), new AbortController().signal)
  expect(questions.answer(message, { agreed: false })).toMatchObject({ kind: 'answered' })
  expect(await open).toEqual({ kind: 'denied' })
})

test('a command is shown line by line as it would run, and what is left out is counted', async () => {
  const { said, ask, questions, asked } = thread()
  const answer = ask(permission('run a command', `# tidy up\nrm -rf build\n${'z'.repeat(3_000)}`))
  await asked(1)
  expect(said[0]).toContain('```\n# tidy up\nrm -rf build\n')
  expect(said[0]).toContain('… (23 more characters)')
  questions.answer(message, { agreed: false })
  expect(await answer).toEqual({ kind: 'denied' })
})

test('questions come one at a time, so that an answer is for the one that was read', async () => {
  const { said, ask, questions, asked } = thread()
  const [first, second] = [ask(permission('one')), ask(permission('two'))]
  await asked(1)
  expect(said[0]).toContain('one')
  questions.answer(message, { agreed: true })
  expect(await first).toEqual({ kind: 'allowed' })
  await asked(2)
  expect(questions.answer(message, { agreed: false })).toMatchObject({ kind: 'answered' })
  expect(await second).toEqual({ kind: 'denied' })
  expect(questions.answer(message, { agreed: true })).toEqual({ kind: 'nothing-asked' })
})

test('a question that is stopped, withdrawn or never answered has no answer; only the last is told', async () => {
  const withdrawn = new AbortController()
  const { said, ask, stop, asked } = thread()
  const first = ask(permission('one'), withdrawn.signal)
  await asked(1)
  withdrawn.abort()
  expect(await first).toBeUndefined()
  const second = ask(permission('two'))
  await asked(2)
  stop.abort('stop')
  expect(await second).toBeUndefined()
  expect(await ask(permission('three'))).toBeUndefined()
  expect(said).toHaveLength(2)
  const late = thread(0.0005)
  expect(await late.ask(permission('four'))).toBeUndefined()
  expect(late.said[1]).toContain('taken as a no')
})

test('a choice is answered by its number, its name or own words, and not by /allow', async () => {
  const { said, ask, questions, asked } = thread()
  let count = 0
  const answered = async (text: string): Promise<unknown> => {
    const answer = ask(choice)
    count += 1
    await asked(count)
    expect(questions.answer(message, { agreed: true })).toEqual({ kind: 'choice-needed', choices: 2 })
    expect(questions.answer(message, { text: '3' })).toEqual({ kind: 'unknown-choice', choices: 2 })
    questions.answer(message, { text })
    return answer
  }
  expect(await answered('2')).toEqual({ kind: 'answered', text: 'Postgres' })
  expect(await answered('sqlite ')).toEqual({ kind: 'answered', text: 'SQLite' })
  expect(await answered('neither, thanks')).toEqual({ kind: 'answered', text: 'neither, thanks' })
  expect(said[0]).toMatch(/^`claude` asks: Which database\?\n1\. SQLite: one file\n2\. Postgres\nReply with a number,/)
})

test('several choices are given with commas', async () => {
  const questions = createQuestions()
  const asked = questions.ask(message, { ...choice, several: true }, new AbortController().signal)
  expect(questions.answer(message, { text: '1, 7' })).toEqual({ kind: 'unknown-choice', choices: 2 })
  questions.answer(message, { text: '2, sqlite' })
  expect(await asked).toEqual({ kind: 'answered', text: 'Postgres, SQLite' })
})

test('a plain message is taken for an answer only if it names a choice of the open question', async () => {
  const questions = createQuestions()
  const end = new AbortController()
  const isAnswer = (text: string): boolean => questions.isAnswer(message, text)
  expect(isAnswer('2')).toBe(false)
  const one = questions.ask(message, choice, end.signal)
  expect(['2', ' postgres', '3', 'use postgres please', '/status', ''].map(isAnswer)).toEqual([
    true,
    true,
    false,
    false,
    false,
    false,
  ])
  expect(questions.isAnswer({ ...message, conversationId: 'other' }, '2')).toBe(false)
  expect(questions.answer(message, { agreed: false })).toMatchObject({ kind: 'answered' })
  expect(await one).toEqual({ kind: 'denied' })
  const permitted = questions.ask(message, permission('it'), end.signal)
  expect(isAnswer('1')).toBe(false)
  expect(questions.answer(message, { text: 'yes' })).toEqual({ kind: 'permission-needed' })
  end.abort()
  expect(await permitted).toBeUndefined()
})

test('a button answers its own question and no later one', async () => {
  const { buttons, questions, ask, asked } = thread()
  const idIn = (command = ''): string => command.replace(/^\/(?:allow|deny) /, '')
  const first = ask(permission('run a command'))
  await asked(1)
  expect(buttons[0]).toEqual([expect.stringMatching(/^\/allow \w{12}$/), expect.stringMatching(/^\/deny \w{12}$/)])
  expect(questions.answer(message, { agreed: false })).toMatchObject({ kind: 'answered' })
  expect(await first).toEqual({ kind: 'denied' })
  const second = ask(permission('run another'))
  await asked(2)
  const stale = { agreed: true, to: idIn(buttons[0]?.[0]) }
  expect(questions.answer(message, stale)).toEqual({ kind: 'other-question' })
  const fresh = { agreed: true, to: idIn(buttons[1]?.[0]) }
  expect(questions.answer(message, fresh)).toMatchObject({ kind: 'answered' })
  expect(await second).toEqual({ kind: 'allowed' })
  expect(questions.answer(message, fresh)).toEqual({ kind: 'nothing-asked' })
})

test('a choice has a button for each answer, which answers its own question and no later one', async () => {
  const { buttons, labels, questions, ask, asked } = thread()
  const press = (command = '') => questions.answer(message, answerIn(command.replace('/answer ', '')))
  const first = ask(choice)
  await asked(1)
  expect(labels[0]).toEqual(['1. SQLite', '2. Postgres', 'Decline'])
  expect(buttons[0]).toEqual([
    expect.stringMatching(/^\/answer #\w{12} 1$/),
    expect.stringMatching(/^\/answer #\w{12} 2$/),
    expect.stringMatching(/^\/deny \w{12}$/),
  ])
  expect(press(buttons[0]?.[1])).toMatchObject({ kind: 'answered' })
  expect(await first).toEqual({ kind: 'answered', text: 'Postgres' })
  expect(press(buttons[0]?.[0])).toEqual({ kind: 'nothing-asked' })
  const second = ask(choice)
  await asked(2)
  expect(press(buttons[0]?.[0])).toEqual({ kind: 'other-question' })
  expect(press(buttons[1]?.[0])).toMatchObject({ kind: 'answered' })
  expect(await second).toEqual({ kind: 'answered', text: 'SQLite' })
  const permitted = ask(permission('it'))
  await asked(3)
  expect(press(buttons[1]?.[0])).toEqual({ kind: 'other-question' })
  questions.answer(message, { agreed: false })
  expect(await permitted).toEqual({ kind: 'denied' })
})

test('the label of a button is short, on one line, and without secrets or hidden characters', async () => {
  const { labels, ask, stop, asked } = thread()
  const long = `${'x'.repeat(30)}the-secret and more`
  const choices = [{ label: long }, { label: 'a\n\u202eb' }, { label: '' }, { label: `${'x'.repeat(35)}😀yy` }]
  const answer = ask({ ...choice, choices })
  await asked(1)
  expect(labels[0]?.slice(0, 4)).toEqual([`1. ${'x'.repeat(30)}[hidde…`, '2. a b', '3.', `4. ${'x'.repeat(35)}…`])
  stop.abort()
  expect(await answer).toBeUndefined()
})

test('a question with several answers has no buttons for them: each would be the whole answer', async () => {
  const { labels, ask, stop, asked } = thread()
  const answer = ask({ ...choice, several: true })
  await asked(1)
  expect(labels[0]).toEqual(['Decline'])
  stop.abort()
  expect(await answer).toBeUndefined()
})

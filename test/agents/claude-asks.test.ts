import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import type { AgentAttachment, AgentRequest } from '../../src/agents/agent.ts'
import type { AgentQuestion } from '../../src/agents/question.ts'
import { liveness } from '../../src/process/identity.ts'
import { startAnthropicServer } from '../helpers/model-servers/anthropic.ts'
import type { Call, ModelServer, Script, Step } from '../helpers/model-servers/scripted.ts'
import { writeIn } from '../helpers/repo.ts'
import { makeServerWorld, type ServerProcess, until } from '../helpers/server-process.ts'
import { claudeAt, INSTALL_TIMEOUT_MS, makeStage, programs, type Stage, tell } from './stage.ts'

/** The real Claude Code asks, against a model that follows a script; the user answers as a thread does. */

let stage: Stage
let server: ModelServer | undefined

beforeAll(() => void programs(), INSTALL_TIMEOUT_MS)
beforeEach(() => {
  stage = makeStage()
})
afterEach(async () => {
  await server?.[Symbol.asyncDispose]()
  server = undefined
  stage[Symbol.dispose]()
})

const model = async (script: Script): Promise<ModelServer> => (server = await startAnthropicServer(script))
const inTurn =
  (...steps: Step[]): Script =>
  ({ results }) =>
    steps[results.length] ?? { say: 'There is nothing more to do.' }
const bash = (command: string): Call => ({ tool: 'Bash', input: { command, description: 'x' } })
const write = (path: string): Call => ({ tool: 'Write', input: { file_path: path, content: 'x' } })
const question: Call = {
  tool: 'AskUserQuestion',
  input: {
    questions: [
      {
        question: 'Which database?',
        header: 'Database',
        multiSelect: false,
        options: [
          { label: 'SQLite', description: 'one file' },
          { label: 'Postgres', description: 'a server' },
        ],
      },
    ],
  },
}
const here = (...parts: string[]): string => join(stage.directory, ...parts)

/** Allows the first request for permission, denies the rest, and takes the second choice. */
const answering = (asked: AgentQuestion[]): NonNullable<AgentRequest['ask']> => {
  let permissions = 0
  return async (one) => {
    asked.push(one)
    if (one.kind === 'choice') return { kind: 'answered', text: one.choices[1]?.label ?? '' }
    permissions += 1
    return { kind: permissions === 1 ? 'allowed' : 'denied' }
  }
}

test('with agent.permissions ask, each command and edit is asked for; what is denied does not happen', async () => {
  const { url, asked: seen } = await model(
    inTurn(
      { call: bash('touch allowed') },
      { call: bash('touch denied') },
      { call: write(here('file')) },
      { say: 'ok' },
    ),
  )
  const asked: AgentQuestion[] = []
  const told = await tell(claudeAt(url, stage, { permissions: 'ask' }), stage, { ask: answering(asked) })
  expect(told).toMatchObject({ outcome: 'done', text: 'ok' })
  expect(asked).toEqual([
    { kind: 'permission', agent: 'claude', what: 'run a command', detail: 'touch allowed' },
    { kind: 'permission', agent: 'claude', what: 'run a command', detail: 'touch denied' },
    { kind: 'permission', agent: 'claude', what: 'write file', detail: '+ x' },
  ])
  expect(['allowed', 'denied', 'file'].filter((name) => existsSync(here(name)))).toEqual(['allowed'])
  expect(seen.at(-1)?.results[1]).toBe('The user denied this.')
})

test('its own questions are answered by a choice, in a read-only run too, where nothing else is asked', async () => {
  const { url, asked: seen } = await model(
    inTurn({ call: question }, { call: bash('touch evil') }, { call: write(here('evil')) }, { say: 'Postgres it is.' }),
  )
  for (const access of ['write', 'read'] as const) {
    const asked: AgentQuestion[] = []
    const rules = { access, allowedTools: ['Read'], disallowedTools: [] }
    const told = await tell(claudeAt(url, stage), stage, { ask: answering(asked), rules })
    expect(told).toMatchObject({ outcome: 'done', text: 'Postgres it is.' })
    expect(asked.map(({ kind }) => kind)).toEqual(['choice'])
    expect(seen.at(-1)?.results[0]).toContain('"Which database?"="Postgres"')
    expect(existsSync(here('evil'))).toBe(false)
  }
})

test('by default it works without asking, a file outside is denied without asking, and nobody there is a denial', async () => {
  const { url, asked: seen } = await model(
    inTurn(
      { call: bash('touch fine') },
      { call: write(join(stage.repo.path, 'evil')) },
      { call: question },
      { say: 'ok' },
    ),
  )
  const asked: AgentQuestion[] = []
  const ask: NonNullable<AgentRequest['ask']> = async (one) => {
    asked.push(one)
    return undefined
  }
  expect(await tell(claudeAt(url, stage), stage, { ask })).toMatchObject({ outcome: 'done', text: 'ok' })
  expect(asked.map(({ kind }) => kind)).toEqual(['choice'])
  expect(seen.at(-1)?.results.slice(1)).toEqual([
    expect.stringContaining('outside the worktree'),
    'Nobody answered, so this was not allowed.',
  ])
  expect([existsSync(here('fine')), existsSync(join(stage.repo.path, 'evil'))]).toEqual([true, false])
})

test('stopped while it asks, it is dead, and did not do it', async () => {
  const { url } = await model(inTurn({ call: bash('touch evil') }))
  const abort = new AbortController()
  const ask: NonNullable<AgentRequest['ask']> = () =>
    new Promise((resolve) => {
      abort.signal.addEventListener('abort', () => resolve(undefined))
      abort.abort()
    })
  const told = await tell(claudeAt(url, stage, { permissions: 'ask' }), stage, { ask, signal: abort.signal })
  expect(told.outcome).toBe('cancelled')
  expect(told.started.map(liveness)).toEqual(['dead'])
  expect(existsSync(here('evil'))).toBe(false)
})

/** 1×1 pixel. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const PDF =
  '%PDF-1.1\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n'

test('attachments: an image and a PDF reach the model, a text can be read and not changed', async () => {
  const files = stage.box.path('files')
  const notes = join(files, 'notes.txt')
  const attached = (name: string, mediaType: string, content: Buffer): AgentAttachment => {
    writeIn(files, name, '')
    writeFileSync(join(files, name), content)
    return { path: join(files, name), name, mediaType, bytes: content.length, longestSide: 1 }
  }
  const attachments = [
    attached('a.png', 'image/png', Buffer.from(PNG, 'base64')),
    attached('b.pdf', 'application/pdf', Buffer.from(PDF)),
    attached('notes.txt', 'text/plain', Buffer.from('NOTES-CONTENT')),
  ]
  const { url, asked } = await model(
    inTurn(
      { call: { tool: 'Read', input: { file_path: notes } } },
      { call: write(notes) },
      { call: write(join(files, 'new')) },
      { say: 'Seen.' },
    ),
  )
  const rules = { access: 'read', allowedTools: [], disallowedTools: [] } as const
  for (const change of [{}, { rules }]) {
    const told = await tell(claudeAt(url, stage), stage, { attachments, ...change })
    expect(told).toMatchObject({ outcome: 'done', text: 'Seen.' })
    const last = asked.at(-1)
    expect(last?.results[0]).toContain('NOTES-CONTENT')
    expect(last?.whole).toContain('"media_type":"image/png"')
    expect(last?.whole).toContain(Buffer.from(PDF).toString('base64'))
    expect(last?.said.join('\n')).toContain(notes)
  }
  expect(readFileSync(notes, 'utf8')).toBe('NOTES-CONTENT')
  expect(existsSync(join(files, 'new'))).toBe(false)
})

const hears = (thread: ServerProcess, conversation: string, text: string): Promise<true> =>
  until(`${conversation} hears "${text}"`, async () =>
    (await thread.messages(conversation)).some((said) => said.text.includes(text)) ? true : undefined,
  )

test('through the server: it asks in the thread and is answered there, with /allow, /deny and the number of a choice', async () => {
  const { url, asked } = await model(
    inTurn({ call: bash('touch allowed') }, { call: bash('touch denied') }, { call: question }, { say: 'All done.' }),
  )
  await using world = makeServerWorld()
  writeFileSync(
    join(world.home, 'config.yaml'),
    `worktrees: { spares: 0 }
agent: { default: claude, permissions: ask, claude: { command: "${programs().claude}" } }
`,
  )
  await world.project()
  const env = {
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_API_KEY: 'made-up-key',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  }
  const thread = await world.serve({ env })
  await thread.say('T1', 'fix the login bug')
  await hears(thread, 'T1', '`claude` asks for permission: run a command\n```\ntouch allowed\n```')
  await thread.say('T1', '/allow')
  await hears(thread, 'T1', 'touch denied')
  await thread.say('T1', '/deny')
  await hears(thread, 'T1', '`claude` asks: Which database?\n1. SQLite: one file\n2. Postgres: a server')
  // An /allow is no choice.
  await thread.say('T1', '/allow')
  await hears(thread, 'T1', 'Reply with a number from 1 to 2')
  await thread.say('T1', '2')
  await hears(thread, 'T1', 'All done.')
  expect((await thread.messages('T1')).map(({ text }) => text)).toEqual(
    expect.arrayContaining(['Allowed once.', 'Denied.', 'Answered: Postgres', 'All done.']),
  )
  expect(asked.at(-1)?.results.slice(1)).toEqual([
    'The user denied this.',
    expect.stringContaining('"Which database?"="Postgres"'),
  ])
  const [environment] = await world.json<{ path: string }[]>(world.box.path('project'), 'worktree', 'list')
  const tree = environment?.path ?? ''
  expect([existsSync(join(tree, 'allowed')), existsSync(join(tree, 'denied'))]).toEqual([true, false])

  // Stopped while it asks.
  await thread.say('T2', 'again')
  await hears(thread, 'T2', 'touch allowed')
  await thread.say('T2', '/stop')
  await hears(thread, 'T2', 'Stopped.')
})

import { randomUUID } from 'node:crypto'
import { readFileSync, renameSync, rmSync } from 'node:fs'
import { relative } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { chatContext } from '../../test/helpers/chat.ts'
import { makeWorld, type World } from '../../test/helpers/world.ts'
import type { Agent, AgentRequest, AgentResult } from '../agents/agent.ts'
import { AppError } from '../domain/errors.ts'
import type { Environments } from '../isolation/environments.ts'
import { issue } from '../../test/isolation/scene.ts'
import type { InboxMessage } from '../store/store.ts'
import type { ConversationsContext } from './context.ts'
import { handleMessage } from './handle-message.ts'
import type { Handled } from './message-controls.ts'
import type { Delivery, Progress } from './outbox/delivery.ts'
import { threadReporter } from './thread-reporter.ts'
import { createQuestions } from './questions.ts'
import { nothingRunning } from '../runs/stop-run.ts'
import { createTurns } from '../runs/turns.ts'

let world: World
beforeEach(async () => {
  world = await makeWorld()
})
afterEach(() => world[Symbol.asyncDispose]())

const agentThat = (run: Agent['run']): Agent => ({
  name: 'demo',
  availability: async () => ({ state: 'ready', version: undefined }),
  run,
})

/** One message, worked on by this agent; `reason` is why it is interrupted while it runs. */
const handled = async (
  run: Agent['run'],
  {
    reason,
    create,
    details = {},
    text = 'fix it',
    ...over
  }: {
    reason?: 'stop' | 'shutdown'
    /** Instead of creating an environment. */
    create?: () => Promise<never>
    details?: InboxMessage['details']
    text?: string
  } & Partial<ConversationsContext> = {},
): Promise<{ outcome: Handled; state: string | undefined; said: string[] }> => {
  const cancel = new AbortController()
  const agent = agentThat((request) => {
    if (reason !== undefined) cancel.abort(reason)
    return run(request)
  })
  const provider: Environments = {
    ...world.provider,
    ...(create !== undefined && {
      create: () => {
        if (reason !== undefined) cancel.abort(reason)
        return create()
      },
    }),
  }
  const context = { ...chatContext(world, [agent]), environments: async () => provider, ...over }
  const { store } = world.context
  const { id } = await context.queue.accept({
    platform: 'test',
    conversationId: 'T1',
    deliveryId: randomUUID(),
    kind: 'message',
    text,
    details,
    lane: 'turn',
  })
  const message = await context.queue.claim('turn')
  if (message === undefined) throw new Error('nothing was claimed')
  const outcome = await handleMessage(context, message, {
    signal: cancel.signal,
    turns: createTurns(),
    questions: createQuestions(),
    stop: async () => nothingRunning,
    whileWaiting: (wait) => wait(),
  })
  const said = await store.outbox.ofConversation(message, 10)
  return { outcome, state: (await store.inbox.get(id))?.state, said: said.map(({ text }) => text) }
}

const survives = async (): Promise<never> => {
  throw new AppError('busy', 'claude could not be ended: process 12 survives')
}
const ends = async (): Promise<AgentResult> => ({ outcome: 'cancelled', text: '' })

describe('a message whose agent is ended from outside', () => {
  test('goes back to the line at a shutdown', async () => {
    expect(await handled(ends, { reason: 'shutdown' })).toMatchObject({ outcome: 'put-back', state: 'waiting' })
  })

  test('stays with us while the agent may live, so that the next start ends that one first', async () => {
    expect(await handled(survives, { reason: 'shutdown' })).toMatchObject({ outcome: 'put-back', state: 'running' })
  })

  test('is answered at a stop, and not with "stopped" while the agent may live', async () => {
    const stopped = await handled(ends, { reason: 'stop' })
    expect(stopped).toMatchObject({ outcome: 'stopped', state: 'done' })
    expect(stopped.said.at(-1)).toMatch(/^Stopped\./)
    const alive = await handled(survives, { reason: 'stop' })
    expect(alive).toMatchObject({ outcome: 'failed', state: 'done' })
    expect(alive.said.at(-1)).toContain('process 12 survives')
  })
})

describe('a run that gets no isolated worktree', () => {
  const never = async (): Promise<never> => {
    throw new Error('the agent was run')
  }
  const locked = new AppError('busy', 'the repository is in use by another process', { remedy: 'try again later' })
  const setup = new AppError('setup-failed', 'setup failed: `npm ci` exited with code 1')

  test.each([
    [
      'because its pull request is not there',
      async () => ({ details: { hints: { workflowType: 'pr', workflowId: '555' } } as const }),
      /^Couldn't set up an isolated worktree of `project`: project has no remote, so PR #555 can't be fetched\. Nothing was run\. Add one with `git remote add origin <url>` on the server\.$/,
    ],
    [
      'because its worktree exists and is broken',
      async () => {
        const { path } = await issue(world, 7)
        rmSync(path, { recursive: true })
        world.box.repo(relative(world.box.root, path))
        return { details: { hints: { workflowType: 'issue', workflowId: '7' } } as const }
      },
      /^Couldn't set up an isolated worktree of `project`: can't use the worktree of issue-7: .*[^.]\. Nothing was run\. Run `coppice doctor` on the server for suggestions\.$/,
    ],
    [
      'because the repository is locked',
      async () => ({ create: async () => Promise.reject(locked) }),
      "Couldn't set up an isolated worktree of `project`: the repository is in use by another process. Nothing was run. Try again later.",
    ],
    [
      'because setup failed',
      async () => ({ create: async () => Promise.reject(setup) }),
      "Couldn't set up an isolated worktree of `project`: setup failed: `npm ci` exited with code 1. The agent was not run.",
    ],
    [
      'because the repository is gone',
      async () => {
        renameSync(world.repo.path, world.box.path('elsewhere'))
        return {}
      },
      /^Couldn't set up an isolated worktree of `project`: .*Nothing was run\. Put it back on the server/,
    ],
  ])('%s says that, why, and that nothing was run', async (_why, arrange, expected) => {
    const { outcome, said } = await handled(never, await arrange())
    expect(outcome).toBe('failed')
    expect(said).toHaveLength(1)
    expect(said[0]).toMatch(expected)
  })

  test.each([
    ['a cancelled step', new AppError('cancelled', 'git was cancelled')],
    ['a lock that was busy', locked],
  ])('because it was stopped meanwhile says just that, also after %s', async (_what, error) => {
    const stopped = await handled(never, { reason: 'stop', create: async () => Promise.reject(error) })
    expect(stopped).toMatchObject({ outcome: 'stopped', state: 'done', said: ['Stopped. Nothing was run.'] })
    const down = await handled(never, { reason: 'shutdown', create: async () => Promise.reject(error) })
    expect(down).toMatchObject({ outcome: 'put-back', state: 'waiting' })
  })
})

test('a chat that nobody bound to the only repository is told which one that is, also if no worktree is made', async () => {
  world.repo.commit('.coppice/commands/look.md', '---\ntype: read\nrequiresIsolation: false\n---\nLook around.\n')
  const looks = async (): Promise<AgentResult> => ({ outcome: 'done', text: 'I looked.' })
  const { said } = await handled(looks, { text: '/look' })
  expect(said).toEqual(['Using `project`, the only registered repository.', 'I looked.'])
  expect((await handled(looks, { text: '/look' })).said.slice(2), 'once').toEqual(['I looked.'])
  expect((await handled(looks)).said[3]).toMatch(/^Working in isolated branch `thread-\w+` of `project`$/)
})

test('whatever is said is redacted before it is recorded', async () => {
  const redact = (text: string): string => text.replaceAll('canary', '[hidden]').replaceAll('thread-', '[hidden]')
  const { said } = await handled(async () => ({ outcome: 'done', text: 'the key is canary' }), { redact })
  expect(said.at(-1)).toBe('the key is [hidden]')
  expect(said[0]).toMatch(/^Working in isolated branch `\[hidden\]/)
})

test('at the limit of the budget a message is kept, also while its platform cannot be asked about it', async () => {
  const { context } = world
  const isolation = { ...context, settings: { ...context.settings, budgetConversationTurns: 0 } }
  const prepare = async () => Promise.reject(new AppError('remote-unreachable', 'the platform does not answer'))
  const deliveries = new Map([['test', { send: async () => Promise.reject(new Error('not asked')), prepare } as never]])
  const { outcome, said } = await handled(survives, { isolation, deliveries })
  expect(outcome).toBe('answered')
  expect(said).toEqual([expect.stringContaining('Your message is on hold')])
})

/** A platform that notes what it is shown. */
const shownBy = (platform: string, shown: (Progress | undefined)[], more: Partial<Delivery> = {}) =>
  new Map<string, Delivery>([
    [
      platform,
      {
        platform,
        limit: undefined,
        send: async () => {},
        preview: (_id, progress) => void shown.push(progress),
        ...more,
      },
    ],
  ])

describe('while an agent works', () => {
  const works = async ({ emit }: AgentRequest): Promise<AgentResult> => {
    emit({ type: 'tool', line: 'ran npm test in /home/me/project' })
    emit({ type: 'text', text: 'All ' })
    emit({ type: 'text', text: 'green.' })
    return { outcome: 'done', text: 'All green.' }
  }

  test('its platform is shown the text so far, the last action and since when it runs', async () => {
    const shown: (Progress | undefined)[] = []
    await handled(works, { deliveries: shownBy('test', shown) })
    const tool = 'ran npm test in /home/me/project'
    expect(shown.map((one) => [one?.text, one?.tool])).toEqual([
      ['', tool],
      ['All ', tool],
      ['All green.', tool],
    ])
    expect(new Set(shown.map((one) => one?.startedAt)).size).toBe(1)
  })

  test.each([
    ['/stop', ends, { reason: 'stop' as const }],
    ['a failure', survives, {}],
  ])('%s ends what is shown, since no answer takes its place', async (_what, run, more) => {
    const shown: (Progress | undefined)[] = []
    await handled(run, { deliveries: shownBy('test', shown), ...more })
    expect(shown).toEqual([undefined])
  })

  test('it is shown from the start, and a public thread sees none of this machine’s paths', async () => {
    const shown: (Progress | undefined)[] = []
    const context = { ...chatContext(world), deliveries: shownBy('github', shown) }
    const { store } = world.context
    const named = { id: 'm', platform: 'github', conversationId: 'acme/app#1' }
    const message = { ...named, attempts: 1, details: {} } as InboxMessage
    const reporter = threadReporter({ ...context, queue: { ...context.queue, began: async () => {} } }, message, {
      conversation: {} as never,
      codebase: world.codebase,
      run: {} as never,
      known: await context.platforms(),
      offers: [],
    })
    await reporter.began(world.context.self)
    reporter.event({ type: 'tool', line: 'ran npm test in /home/me/project' })
    expect(shown.map((one) => [one?.text, one?.tool])).toEqual([
      ['', undefined],
      ['', 'ran npm test in …/project'],
    ])
    expect(await store.inbox.get('m')).toBeUndefined()
  })
})

test('files that came with a message reach the agent, and the thread is told which did not', async () => {
  const fetchAttachment: Delivery['fetchAttachment'] = async ({ reference }) =>
    (async function* () {
      yield Buffer.from(reference === 'a' ? 'hello' : '\0\0')
    })()
  const attachments = [
    { name: 'notes.md', reference: 'a' },
    { name: 'tool.exe', reference: 'b' },
  ]
  let given: AgentRequest | undefined
  let read = ''
  const reads = async (request: AgentRequest): Promise<AgentResult> => {
    given = request
    read = readFileSync(request.attachments?.[0]?.path ?? '', 'utf8')
    return { outcome: 'done', text: 'Read.' }
  }
  const details = { attachments, context: 'earlier' }
  const { said } = await handled(reads, { details, deliveries: shownBy('test', [], { fetchAttachment }) })
  expect([read, given?.attachments?.map(({ name, mediaType }) => [name, mediaType])]).toEqual([
    'hello',
    [['notes.md', 'text/plain']],
  ])
  expect(given?.attachments?.[0]?.path.startsWith(given.directory)).toBe(false)
  expect(given?.context).toBe(
    'earlier\n\nFiles that came with the message or its thread and that you don\'t have:\n- "tool.exe": not a PNG, JPEG, GIF or WebP image, text or PDF',
  )
  expect(said).toEqual([
    expect.stringMatching(/^Not passed to the agent: `tool.exe`/),
    expect.stringMatching(/^Working in/),
    'Read.',
  ])
})

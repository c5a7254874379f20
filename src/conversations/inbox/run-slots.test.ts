import { expect, onTestFinished, test } from 'vitest'
import type { Agent, AgentRequest } from '../../agents/agent.ts'
import type { Settings } from '../../domain/config/settings.ts'
import { chatContext } from '../../../test/helpers/chat.ts'
import { makeWorld, type World } from '../../../test/helpers/world.ts'
import { type Conversations, createConversations } from '../conversations.ts'
import { createOutbox } from '../outbox/outbox.ts'
import { createRunSlots, type RunSlot } from './run-slots.ts'
import { createRunLimit } from '../../runs/time-limit.ts'

type Running = {
  readonly world: World
  readonly conversations: Conversations
  /** Runs that have begun and not ended, by the words of their message. */
  readonly working: Set<string>
  readonly say: (conversationId: string, text: string) => Promise<void>
  /** What was said to a conversation so far. */
  readonly heard: (conversationId: string) => Promise<string[]>
  /** The commands of the buttons that were shown last. */
  readonly buttonsIn: (conversationId: string) => Promise<readonly string[]>
}

type Script = (request: AgentRequest) => Promise<string>

/** Real store, git and environments; what the agents do is the test's. */
const running = async (
  script: Script,
  settings: Partial<Settings> = {},
  hang?: (name: string) => Promise<void>,
): Promise<Running> => {
  const failpoint = hang ?? (async () => undefined)
  const world = await makeWorld({ settings: { worktreesPerCodebase: 100, ...settings }, context: { failpoint } })
  const working = new Set<string>()
  const agent: Agent = {
    name: 'scripted',
    availability: async () => ({ state: 'ready', version: undefined }),
    run: async (request) => {
      working.add(request.prompt)
      try {
        const text = await Promise.race([script(request), aborted(request)])
        return { outcome: 'done', text }
      } catch (error) {
        if (!request.signal.aborted) throw error
        return { outcome: 'cancelled', text: `half of ${request.prompt}` }
      } finally {
        working.delete(request.prompt)
      }
    },
  }
  const context = chatContext(world, [agent])
  const outbox = createOutbox({ ...world.context, ...context, deliveries: new Map() })
  const conversations = createConversations(context, { outbox, endMs: hang === undefined ? 20_000 : 100 })
  await conversations.start()
  onTestFinished(async () => {
    await conversations.stop(0)
    await world[Symbol.asyncDispose]()
  })
  let count = 0
  return {
    world,
    conversations,
    working,
    say: async (conversationId, text) => {
      count += 1
      const details = { codebase: 'project' }
      await conversations.accept({
        platform: 'test',
        conversationId,
        deliveryId: `${count}`,
        kind: 'message',
        text,
        details,
      })
    },
    heard: async (conversationId) => {
      const said = await world.context.store.outbox.ofConversation({ platform: 'test', conversationId }, 50)
      return said.map(({ text }) => text)
    },
    buttonsIn: async (conversationId) => {
      const said = await world.context.store.outbox.ofConversation({ platform: 'test', conversationId }, 50)
      return said.findLast(({ actions }) => actions !== undefined)?.actions?.map(({ command }) => command) ?? []
    },
  }
}

const aborted = ({ signal }: AgentRequest): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true })
  })

const asks: Script = async (request) => {
  const { prompt, ask } = request
  if (!prompt.startsWith('ask')) return `did ${prompt}`
  const answer = await ask?.({ kind: 'permission', agent: 'scripted', what: 'run it' })
  return `${prompt}: ${String(answer?.kind === 'allowed')}`
}

test('fifty runs that wait for an answer keep no place; answered, they continue in turn and within the limit', async () => {
  const most = { now: 0, ever: 0 }
  const gate = Promise.withResolvers<void>()
  const { say, heard, working } = await running(
    async (request) => {
      const said = await asks(request)
      most.now += 1
      most.ever = Math.max(most.ever, most.now)
      await gate.promise
      most.now -= 1
      return said
    },
    { concurrentConversations: 3 },
  )
  const names = Array.from({ length: 50 }, (_, n) => `ask ${n}`)
  await Promise.all(names.map((name) => say(name, name)))
  await expect.poll(() => working.size).toBe(50)
  // Another conversation is worked on all the same.
  await say('other', 'work')
  await expect.poll(() => most.now).toBe(1)
  await Promise.all(names.map((name) => say(name, '/allow')))
  await expect.poll(() => most.now).toBe(3)
  gate.resolve()
  for (const name of names) await expect.poll(() => heard(name)).toContain(`${name}: true`)
  expect(await heard('other')).toContain('did work')
  expect(most.ever).toBe(3)
  const told = await Promise.all(names.map(heard))
  expect(told.flat().filter((text) => text.startsWith('The concurrency limit is reached')).length).toBeGreaterThan(40)
})

test('a run that waits for its turn in a shared worktree keeps no place', async () => {
  const gate = Promise.withResolvers<void>()
  const { world, say, working, heard } = await running(
    async ({ prompt }) => {
      if (prompt === 'first') await gate.promise
      return `did ${prompt}`
    },
    { concurrentConversations: 2 },
  )
  await say('a', 'first')
  await expect.poll(() => working).toContain('first')
  await say('b', '/worktree link thread-a')
  const [environment] = await world.context.store.environments.live(world.codebase.id)
  await say('b', `/worktree link ${environment?.branch ?? ''}`)
  await say('b', 'second')
  await expect.poll(async () => (await heard('b')).join()).toContain('Your message runs next')
  await say('c', 'third')
  await expect.poll(() => heard('c')).toContain('did third')
  gate.resolve()
  await expect.poll(() => heard('b')).toContain('did second')
})

test('/stop ends a run that waits, and one that waits to continue', async () => {
  const gate = Promise.withResolvers<void>()
  const { say, heard, working } = await running(
    async (request) => {
      const said = await asks(request)
      await gate.promise
      return said
    },
    { concurrentConversations: 1 },
  )
  await say('a', 'ask a')
  await say('b', 'ask b')
  await expect.poll(() => working.size).toBe(2)
  await say('c', 'work')
  await expect.poll(() => working.size).toBe(3)
  await say('a', '/stop')
  await say('b', '/allow')
  await expect.poll(async () => (await heard('b')).join()).toContain('The concurrency limit is reached')
  await say('b', '/stop')
  await expect.poll(() => [...working]).toEqual(['work'])
  gate.resolve()
  await expect.poll(() => heard('c')).toContain('did work')
  for (const name of ['a', 'b']) {
    await expect.poll(async () => (await heard(name)).join()).toContain('Stopped. The work so far')
  }
})

const short = { runMinutes: 0.04 }

test('a run that never ends is ended at the limit: what it said is posted with what to do, and it is not run again', async () => {
  const { world, say, heard, working } = await running(
    async (request) => (request.prompt === 'never' ? aborted(request) : `did ${request.prompt}`),
    { ...short, concurrentConversations: 1 },
  )
  await say('a', 'never')
  await say('b', 'work')
  await expect.poll(() => heard('b')).toContain('did work')
  expect((await heard('a')).slice(1)).toEqual([
    'half of never',
    'Stopped: the run reached its limit of 0.04 minutes. Its work so far is in the worktree. Send a message to continue, or raise `limits.runMinutes` in config.yaml.',
  ])
  expect(working.size).toBe(0)
  expect(await world.context.store.inbox.counts()).toEqual({ waiting: 0, running: 0 })
  await say('a', 'again')
  await expect.poll(() => heard('a')).toContain('did again')
})

test('time that a run waits for a person does not count', async () => {
  const { say, heard, working } = await running(asks, { runMinutes: 0.05, concurrentConversations: 2 })
  const never = running(aborted, { runMinutes: 0.05 })
  await say('a', 'ask a')
  await expect.poll(() => working.size).toBe(1)
  // As long as the limit lasts for somebody else.
  const other = await never
  await other.say('b', 'never')
  await expect.poll(async () => (await other.heard('b')).join()).toContain('Stopped: the run')
  await say('a', '/allow')
  await expect.poll(() => heard('a')).toContain('ask a: true')
})

// Before its agent has begun, and after it has ended.
test.each(['run.leased', 'run.ended'])(
  'a run that hangs at %s and does not listen is given up at the limit, and its place is free',
  async (where) => {
    let hung = false
    const { say, heard, world } = await running(asks, { ...short, concurrentConversations: 1 }, (name) => {
      if (hung || name !== where) return Promise.resolve()
      hung = true
      return new Promise(() => undefined)
    })
    await say('a', 'hangs')
    await say('b', 'work')
    await expect.poll(async () => (await heard('a')).join()).toContain("It hasn't ended yet.")
    await expect.poll(() => heard('b')).toContain('did work')
    expect(await world.context.store.inbox.counts()).toEqual({ waiting: 0, running: 0 })
  },
)

test('a question with choices is answered by a plain message that names one, a button, or /answer; others wait for their turn', async () => {
  const choices = [{ label: 'SQLite' }, { label: 'Postgres' }]
  const { say, heard, buttonsIn } = await running(async ({ ask, prompt }) => {
    if (!prompt.startsWith('ask')) return `did ${prompt}`
    const answer = await ask?.({ kind: 'choice', agent: 'scripted', question: 'Which?', choices, several: false })
    return `${prompt}: ${answer?.kind === 'answered' ? answer.text : 'none'}`
  })
  const hears = async (text: string): Promise<void> => {
    await expect.poll(() => heard('a')).toContain(text)
  }
  const timesAsked = async (): Promise<number> =>
    (await heard('a')).filter((text) => text.includes('asks: Which?')).length
  const isAsked = async (times: number): Promise<void> => {
    await expect.poll(timesAsked).toBe(times)
  }
  await say('a', 'ask one')
  await isAsked(1)
  await say('a', 'and then this')
  await say('a', '2')
  await hears('Answered: Postgres')
  await hears('ask one: Postgres')
  await hears('did and then this')
  await say('a', 'ask two')
  await isAsked(2)
  await say('a', `/answer I don't know, "either" --help`)
  await hears(`ask two: I don't know, "either" --help`)
  await say('a', 'ask three')
  await isAsked(3)
  await say('a', (await buttonsIn('a'))[1] ?? '')
  await hears('ask three: Postgres')
  // Without a question, it is a message like any other.
  await say('a', '2')
  await hears('did 2')
})

test('a question that its agent did not wait for does not stop the clock', async () => {
  const { say, heard } = await running(
    async ({ ask }) => {
      void ask?.({ kind: 'permission', agent: 'scripted', what: 'run it' })
      return 'done'
    },
    short,
    (name) => (name === 'run.ended' ? new Promise(() => undefined) : Promise.resolve()),
  )
  await say('a', 'asks and goes')
  await expect.poll(async () => (await heard('a')).join()).toContain('Stopped: the run')
})

test('a question that its agent did not wait for is no longer pending when the run has ended', async () => {
  const { say, heard } = await running(async ({ prompt, ask }) => {
    const answer = ask?.({ kind: 'permission', agent: 'scripted', what: prompt })
    if (prompt === 'asks and goes') return 'gone'
    return `${prompt}: ${String((await answer)?.kind)}`
  })
  const timesAsked = async (): Promise<number> =>
    (await heard('a')).filter((text) => text.includes('asks for permission')).length
  await say('a', 'asks and goes')
  await expect.poll(() => heard('a')).toContain('gone')
  await say('a', '/allow')
  await expect.poll(() => heard('a')).toContain('No pending question.')
  await say('a', 'asks and stays')
  await expect.poll(timesAsked).toBe(2)
  await say('a', '/allow')
  await expect.poll(() => heard('a')).toContain('asks and stays: allowed')
})

test('a shutdown does not wait for runs that wait for a person', async () => {
  const { say, conversations, working, world } = await running(asks)
  await say('a', 'ask a')
  await expect.poll(() => working.size).toBe(1)
  expect(await conversations.stop(60_000)).toEqual({ finished: 0, left: 1 })
  expect(await world.context.store.inbox.counts()).toEqual({ waiting: 1, running: 0 })
})

test('a place is given up with the first of several waits and taken again after the last', async () => {
  const places = createRunSlots(1, () => undefined)
  const cancel = new AbortController()
  const { signal } = cancel
  const wait = (place: RunSlot) => {
    const gate = Promise.withResolvers<void>()
    let over = false
    const ended = place.whileWaiting(() => gate.promise, { signal }).then(() => (over = true))
    return { end: gate.resolve, ended, isOver: () => over }
  }
  const first = places.take()
  const [one, two] = [wait(first), wait(first)]
  expect(places.available()).toBe(true)
  const second = places.take()
  one.end()
  await one.ended
  two.end()
  await expect.poll(() => places.taken()).toBe(1)
  expect(two.isOver(), 'the other one has the place').toBe(false)
  // It waits for something else before it has got its place: then it needs none.
  const three = wait(first)
  await two.ended
  second.leave()
  expect(places.available()).toBe(true)
  three.end()
  await three.ended
  expect(places.available()).toBe(false)
  first.leave()
  first.leave()
  expect([places.taken(), places.available()]).toEqual([0, true])
  // A run that is told to end needs no place for that.
  const last = wait(places.take())
  const other = places.take()
  last.end()
  await expect.poll(() => places.available()).toBe(false)
  cancel.abort()
  await last.ended
  other.leave()
  expect([places.taken(), places.available()]).toEqual([0, true])
})

test('a limit counts the time between pauses, and none after the end', async () => {
  let reached = 0
  const limit = createRunLimit(1, () => (reached += 1))
  await limit.pausedFor(async () => limit.pausedFor(async () => new Promise((resolve) => setTimeout(resolve, 20))))
  expect(reached).toBe(0)
  await expect.poll(() => reached).toBe(1)
  const other = createRunLimit(1, () => (reached += 1))
  const paused = other.pausedFor(async () => other.end())
  await paused
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(reached).toBe(1)
})

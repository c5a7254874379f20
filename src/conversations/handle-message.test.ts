import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { chatContext } from '../../test/helpers/chat.ts'
import { makeWorld, type World } from '../../test/helpers/world.ts'
import type { Agent, AgentResult } from '../agents/agent.ts'
import { AppError } from '../domain/errors.ts'
import type { ConversationsContext } from './context.ts'
import { handleMessage } from './handle-message.ts'
import type { Handled } from './message-controls.ts'
import { createQuestions } from './questions.ts'
import { nothingRunning } from '../runs/stop-run.ts'
import { createTurns } from '../runs/turns.ts'

let world: World
beforeEach(async () => {
  world = await makeWorld()
})
afterEach(() => world[Symbol.asyncDispose]())

const agentThat = (run: () => Promise<AgentResult>): Agent => ({
  name: 'demo',
  availability: async () => ({ state: 'ready', version: undefined }),
  run,
})

/** One message, worked on by this agent; `reason` is why it is interrupted while it runs. */
const handled = async (
  run: () => Promise<AgentResult>,
  { reason, ...over }: { reason?: 'stop' | 'shutdown' } & Partial<ConversationsContext> = {},
): Promise<{ outcome: Handled; state: string | undefined; said: string[] }> => {
  const cancel = new AbortController()
  const agent = agentThat(() => {
    if (reason !== undefined) cancel.abort(reason)
    return run()
  })
  const context = { ...chatContext(world, [agent]), ...over }
  const { store } = world.context
  const { id } = await context.queue.accept({
    platform: 'test',
    conversationId: 'T1',
    deliveryId: randomUUID(),
    kind: 'message',
    text: 'fix it',
    details: {},
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

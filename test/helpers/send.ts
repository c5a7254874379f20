import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import type { Agent, AgentRequest } from '../../src/agents/agent.ts'
import { handleMessage } from '../../src/conversations/handle-message.ts'
import { createQuestions } from '../../src/conversations/questions.ts'
import type { ConversationsContext } from '../../src/conversations/context.ts'
import type { IncomingMessage, MessageDetails } from '../../src/domain/message.ts'
import { nothingRunning } from '../../src/runs/stop-run.ts'
import { createRunTokens } from '../../src/runs/tokens.ts'
import { createTurns } from '../../src/runs/turns.ts'
import type { InboxMessage } from '../../src/store/store.ts'
import { chatContext } from './chat.ts'
import type { World } from './world.ts'

export type Sent = { readonly platform?: string; readonly conversationId: string; readonly details: MessageDetails }

export type During = {
  /** What the agent does in its directory. */
  readonly agent?: (directory: string) => Promise<void>
  /** Between finding the worktree and working in it. */
  readonly placed?: () => Promise<void>
  /** The agent is only told that it may not write. */
  readonly unenforced?: boolean
}

export type Send = (text: string, sent: Sent, during?: During) => ReturnType<typeof sendTo>

/** A message as a server handles it: accepted, claimed, worked on to its end. */
export const handleOne = async (
  context: ConversationsContext,
  arrived: Pick<IncomingMessage, 'platform' | 'conversationId' | 'text'> & Partial<IncomingMessage>,
): Promise<InboxMessage> => {
  const { queue } = context
  await queue.accept({ deliveryId: randomUUID(), kind: 'message', details: {}, ...arrived, lane: 'turn' })
  const message = await queue.claim('turn')
  if (message === undefined) throw new Error('nothing was claimed')
  await handleMessage(context, message, {
    signal: new AbortController().signal,
    turns: createTurns(),
    questions: createQuestions(),
    stop: async () => nothingRunning,
    whileWaiting: (wait) => wait(),
  })
  return message
}

/** One message; what the agent was given, and what was answered. */
export const sendTo = async (
  world: World,
  text: string,
  { platform = 'github', conversationId, details }: Sent,
  { agent, placed, unenforced = false }: During = {},
) => {
  const requests: AgentRequest[] = []
  const runTokens = createRunTokens({ ...world.context, random: () => '0'.repeat(64), url: () => 'http://localhost' })
  const agents = [
    {
      name: 'demo',
      ...(!unenforced && { enforcesReadOnly: true }),
      availability: async () => ({ state: 'ready', version: undefined }),
      run: async (request) => {
        requests.push(request)
        await agent?.(request.directory)
        return { outcome: 'done', text: 'done' }
      },
    } satisfies Agent,
  ]
  const failpoint = async (name: string): Promise<void> => {
    if (name === 'run.placed') await placed?.()
  }
  const context = { ...chatContext({ ...world, context: { ...world.context, failpoint } }, agents), runTokens }
  const message = await handleOne(context, { platform, conversationId, text, details })
  for (const { environment, untrusted } of requests) {
    expect('COPPICE_RUN_TOKEN' in environment, 'only a trusted run gets a token').toBe(!untrusted)
  }
  const said = await world.context.store.outbox.ofConversation(message, 100)
  const own = said.filter(({ inboxId }) => inboxId === message.id).map((reply) => reply.text)
  return { request: requests[0], said: own.join('\n') }
}

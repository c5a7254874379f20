import MarkdownIt from 'markdown-it'
import type { Agent } from '../../src/agents/agent.ts'
import { createChanges } from '../../src/conversations/changes.ts'
import { answerCommand, type ChatAnswer } from '../../src/conversations/answer-command.ts'
import type { ConversationsContext } from '../../src/conversations/context.ts'
import { createStoreQueue } from '../../src/conversations/inbox/store-queue.ts'
import { knownPlatforms } from '../../src/platforms/capabilities.ts'
import { nothingRunning } from '../../src/runs/stop-run.ts'
import type { Conversation, Session } from '../../src/store/store.ts'
import type { World } from './world.ts'
import { noFleet } from './no-fleet.ts'

/** A conversation in which slash commands are said: real git, real store, no server around it. */
export type Chat = {
  readonly context: ConversationsContext
  /** The row as it is now. */
  conversation(): Promise<Conversation>
  /** The whole answer. */
  ask(text: string, signal?: AbortSignal): Promise<ChatAnswer>
  /** The words of an answer; a command of the repository is a mistake here. */
  say(text: string): Promise<string>
  startSession(directory: string, agent?: string): Promise<Session>
  session(): Promise<Session | undefined>
  readonly stops: string[]
}

export const chatContext = ({ context, provider }: World, agents: readonly Agent[] = []): ConversationsContext => ({
  isolation: context,
  environments: async () => provider,
  fleet: noFleet,
  queue: createStoreQueue({ ...context, endRun: async () => true }),
  agents: new Map(agents.map((agent) => [agent.name, agent])),
  deliveries: new Map(),
  platforms: async () => knownPlatforms,
  changes: createChanges(),
  redact: (text) => text,
  keepSpares: () => undefined,
  repoCommands: new Map(),
  cgroup: undefined,
})

export type ChatOptions = {
  readonly id?: string
  readonly bound?: boolean
  readonly agents?: readonly Agent[]
  readonly running?: boolean
}

export const makeChat = async (world: World, options: ChatOptions = {}): Promise<Chat> => {
  const { id = 'T1', bound = true, agents = [readyAgent('demo'), readyAgent('other')], running = false } = options
  const context = chatContext(world, agents)
  const { store, clock, ids } = world.context
  const key = { platform: 'test', conversationId: id }
  await store.conversations.ensure({
    ...key,
    id: ids(),
    codebaseId: bound ? world.codebase.id : undefined,
    environmentId: undefined,
    persistent: false,
    agent: undefined,
    lastActivityAt: clock(),
    closedAt: undefined,
    createdAt: clock(),
  })
  const conversation = async (): Promise<Conversation> => {
    const row = await store.conversations.find(key.platform, key.conversationId)
    if (row === undefined) throw new Error('the conversation is gone')
    return row
  }
  const stops: string[] = []
  const ask: Chat['ask'] = async (text, signal = new AbortController().signal) =>
    answerCommand(context, {
      conversation: await conversation(),
      text,
      controls: {
        wake: () => context.queue.outboxChanged(),
        stop: async () => {
          stops.push(id)
          return { ...nothingRunning, outcome: running ? 'stopped' : 'nothing-running' }
        },
      },
      signal,
    })
  return {
    context,
    conversation,
    ask,
    say: async (text) => {
      const answer = await ask(text)
      if (answer.kind !== 'answer') throw new Error(`${text} is the repository's own command`)
      assertPlaceholdersShow(answer.text)
      return answer.text
    },
    startSession: async (directory, agent = 'demo') => {
      const at = clock()
      const session: Session = {
        id: ids(),
        conversation: (await conversation()).id,
        agent,
        agentSessionId: 'its-own-id',
        directory,
        startedAt: at,
        lastUsedAt: at,
        endedAt: undefined,
        endReason: undefined,
      }
      await store.sessions.start(session)
      return session
    },
    session: async () => store.sessions.live((await conversation()).id),
    stops,
  }
}

const markdown = new MarkdownIt({ html: true })

/** Outside code, GitHub takes `<name>` for an HTML tag and shows nothing. */
const assertPlaceholdersShow = (text: string): void => {
  const html = markdown.render(text)
  const lost = [...text.matchAll(/<([A-Za-z][^<>\n]*)>/g)].flatMap(([found, name = '']) =>
    html.includes(`&lt;${name}&gt;`) ? [] : [found],
  )
  if (lost.length > 0) throw new Error(`GitHub would not show ${lost.join(', ')} of: ${text}`)
}

/** One that could work, and is never asked to. */
export const readyAgent = (name: string): Agent => ({
  name,
  availability: async () => ({ state: 'ready', version: undefined }),
  run: async () => ({ outcome: 'done', text: '' }),
})

export const missingAgent = (name: string): Agent => ({
  ...readyAgent(name),
  availability: async () => ({ state: 'missing', problem: `${name} is not installed`, remedy: `Install ${name}.` }),
})

import type { AgentAvailability } from '../agents/agent.ts'
import { chooseAgent } from '../agents/registry.ts'
import type { Codebase } from '../domain/environment.ts'
import { AppError, toAppError } from '../domain/errors.ts'
import { sentence } from '../domain/text/words.ts'
import { type Call, type ChatCall, command } from './command.ts'
import { boundCodebase } from './target.ts'
import { onlyInChat } from './only-in-chat.ts'
import { nearest } from './grammar/suggest.ts'
import { code, table, type View } from './views/view.ts'
import { remedySentence } from './views/remedy.ts'

export type AgentResult = {
  /** Without a name if none can run. */
  readonly current: CurrentAgent
  readonly set: boolean
  readonly agents: readonly { readonly name: string; readonly availability: AgentAvailability }[]
}

export type CurrentAgent =
  | { readonly name: string; readonly reason: string }
  | { readonly name: undefined; readonly problem: string }

/** The agent for this conversation, and why that one. */
export const currentAgent = async (
  { conversation, context }: Pick<ChatCall, 'conversation' | 'context'>,
  codebase: Codebase | undefined,
): Promise<CurrentAgent> => {
  const { agents, isolation } = context
  try {
    const { agent, reason } = await chooseAgent({
      agents,
      wanted: conversation.agent,
      codebaseDefault: codebase?.defaultAgent,
      settings: isolation.settings,
    })
    return { name: agent.name, reason }
  } catch (error) {
    return { name: undefined, problem: toAppError(error).message }
  }
}

const run = async (call: Call): Promise<AgentResult> => {
  const chat = onlyInChat(call, 'agent')
  const workplace = await call.open()
  const [name] = call.words
  if (name !== undefined) await choose(chat, name)
  const conversation = name === undefined ? chat.conversation : { ...chat.conversation, agent: name }
  const agents = await Promise.all(
    [...chat.context.agents.values()].map(async (agent) => ({
      name: agent.name,
      availability: await agent.availability(),
    })),
  )
  const current = await currentAgent({ ...chat, conversation }, await boundCodebase(workplace, chat))
  return { current, set: name !== undefined, agents }
}

/** Ends the session: another agent can't resume it. */
const choose = async ({ conversation, context }: ChatCall, name: string): Promise<void> => {
  const { store, clock } = context.isolation
  const names = [...context.agents.keys()]
  if (!names.includes(name)) {
    const guess = nearest(name, names)
    throw new AppError('not-found', `unknown agent ${JSON.stringify(name.slice(0, 80))}`, {
      remedy: `${guess === undefined ? '' : `did you mean ${guess}? `}Available: ${names.join(', ') || 'none'}`,
    })
  }
  await store.transaction(async (inside) => {
    await inside.conversations.update(conversation.id, { agent: name })
    const live = await inside.sessions.live(conversation.id)
    if (live !== undefined && live.agent !== name) await inside.sessions.end(conversation.id, 'another agent', clock())
  })
}

const toText = ({ current, set, agents }: AgentResult, view: View): string => {
  const chosen = agents.find(({ name }) => name === current.name)?.availability
  const wrong =
    chosen === undefined || chosen.state === 'ready'
      ? []
      : [`It isn't ready: ${chosen.problem}. ${remedySentence(chosen.remedy, view)}`]
  if (set && current.name !== undefined) {
    return [`This conversation now uses ${code(current.name, view)}.`, ...wrong].join('\n')
  }
  return [
    current.name === undefined
      ? sentence(current.problem)
      : `This conversation uses ${code(current.name, view)}: ${current.reason}.`,
    ...wrong,
    table(
      ['AGENT', 'STATE'],
      agents.map(({ name, availability }) => [{ text: name }, { text: stateOf(availability) }]),
      view,
    ),
    `To switch: ${code('/agent <name>', view)}`,
  ].join('\n')
}

const stateOf = (availability: AgentAvailability): string =>
  availability.state === 'ready'
    ? ['ready', ...(availability.version === undefined ? [] : [availability.version])].join(', ')
    : `${availability.state}: ${availability.problem}`

export const agent = command<AgentResult>({
  run,
  toText,
  toJson: ({ current, set, agents }) => ({
    agent: current.name ?? null,
    set,
    agents: agents.map(({ name, availability }) => ({ name, state: availability.state })),
  }),
})

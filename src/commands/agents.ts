import { join } from 'node:path'
import type { Agent, AgentAvailability } from '../agents/agent.ts'
import { chooseAgent, createAgents } from '../agents/registry.ts'
import { toAppError } from '../domain/errors.ts'
import type { IsolationContext } from '../isolation/context.ts'
import { sentence } from '../domain/text/words.ts'
import { type Call, command } from './command.ts'
import { findTargetCodebase } from './target.ts'
import { code, table, type View } from './views/view.ts'
import { describeRemedy, remedySentence } from './views/remedy.ts'

export type AgentsResult = {
  readonly agents: readonly { readonly name: string; readonly found: AgentAvailability }[]
  /** The selected agent and why, or why none is. */
  readonly chosen:
    | { readonly name: string; readonly reason: string }
    | { readonly name: undefined; readonly problem: string }
  readonly chat: boolean
}

const run = async (call: Call): Promise<AgentsResult> => {
  const workplace = await call.open()
  const { context } = workplace
  const agents = call.chat?.context.agents ?? agentsOf(context)
  const codebase = await findTargetCodebase(call, workplace)
  const found = await Promise.all(
    [...agents.values()].map(async (agent) => ({ name: agent.name, found: await lookAt(agent) })),
  )
  const chosen = await chooseAgent({
    agents,
    wanted: call.chat?.conversation.agent,
    codebaseDefault: codebase?.defaultAgent,
    settings: context.settings,
  }).then(
    ({ agent, reason }) => ({ name: agent.name, reason }),
    (error: unknown) => ({ name: undefined, problem: toAppError(error).message }),
  )
  return { agents: found, chosen, chat: call.chat !== undefined }
}

export const agentsOf = ({ settings, git, clock, ids, self, home, ownEnvironment = {} }: IsolationContext) =>
  createAgents({ settings, git, clock, ids, self, ownEnvironment, contextDirectory: join(home, 'context') })

/** The agent's own check, if it has one. A failing check must not hide the other agents. */
const lookAt = async (agent: Agent): Promise<AgentAvailability> => {
  try {
    return await (agent.inspect?.() ?? agent.availability())
  } catch (error) {
    return {
      state: 'missing',
      problem: `couldn't check ${agent.name}: ${toAppError(error).message}`,
      remedy: toAppError(error).remedy ?? 'See the log.',
    }
  }
}

const toText = ({ agents, chosen, chat }: AgentsResult, view: View): string =>
  [
    table(
      ['AGENT', 'STATE', 'VERSION'],
      agents.map(({ name, found }) => [
        { text: name === chosen.name ? `${name} *` : name },
        { text: stateText(found) },
        { text: (found.state === 'ready' ? found.version : undefined) ?? '' },
      ]),
      view,
    ),
    chosen.name === undefined
      ? sentence(chosen.problem)
      : `* ${code(chosen.name, view)} is ${chat ? 'used here' : 'the default agent'}: ${chosen.reason}.`,
    ...agents.flatMap(({ found }) =>
      found.state === 'ready' ? [] : [`${sentence(found.problem)} ${remedySentence(found.remedy, view)}`],
    ),
  ].join('\n')

const stateText = ({ state }: AgentAvailability): string =>
  ({ ready: 'ready', missing: 'not ready', 'logged-out': 'not logged in' })[state]

export const agents = command<AgentsResult>({
  run,
  toText,
  toJson: ({ agents: all, chosen }, view) => ({
    default: chosen.name ?? null,
    reason: chosen.name === undefined ? chosen.problem : chosen.reason,
    agents: all.map(({ name, found }) => ({
      name,
      state: found.state,
      version: found.state === 'ready' ? (found.version ?? null) : null,
      problem: found.state === 'ready' ? null : found.problem,
      remedy: found.state === 'ready' ? null : describeRemedy(found.remedy, view),
    })),
  }),
})

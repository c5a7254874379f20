import type { Clock, Ids } from '../domain/clock.ts'
import type { Settings } from '../domain/config/settings.ts'
import { AppError } from '../domain/errors.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import type { Git } from '../git/door.ts'
import type { Agent } from './agent.ts'
import { createAcpAgent } from './acp/agent.ts'
import { createClaudeAgent } from './claude/claude.ts'
import { createCodexAgent } from './codex/codex.ts'
import { createCommandAgent } from './command/command.ts'
import { createDemoAgent } from './demo/demo.ts'
import type { Remedy } from '../domain/remedy.ts'

export type AgentParts = {
  readonly settings: Pick<
    Settings,
    | 'agentCommand'
    | 'claudeCommand'
    | 'claudePermissionMode'
    | 'codexCommand'
    | 'codexSandbox'
    | 'agentSilenceMinutes'
    | 'acpAgents'
    | 'agentPermissions'
  >
  readonly git: Git
  readonly clock: Clock
  readonly ids: Ids
  readonly self: ProcessIdentity
  /** Our own variables: each agent takes from them what its list names. */
  readonly ownEnvironment: Readonly<Record<string, string | undefined>>
  /** In the home, for what an agent is given beside the message. */
  readonly contextDirectory: string
}

type Member = {
  /** Undefined when nothing says how to run it. */
  readonly make: (parts: AgentParts) => Agent | undefined
  /** What makes it one of the known ones. */
  readonly remedy: string
}

/** The members of the agent seam, in the order in which a default is looked for: what was set up first, the demo last. */
const members = {
  command: {
    make: (parts) => {
      const command = parts.settings.agentCommand
      return command === undefined ? undefined : createCommandAgent({ ...parts, command })
    },
    remedy: 'set COPPICE_AGENT_COMMAND (or agent.command in config.yaml) to the program to run',
  },
  claude: {
    make: (parts) =>
      createClaudeAgent({
        ...parts,
        command: parts.settings.claudeCommand,
        permissionMode: parts.settings.claudePermissionMode,
        silenceMs: silenceOf(parts),
      }),
    remedy: '',
  },
  codex: {
    make: (parts) =>
      createCodexAgent({
        ...parts,
        command: parts.settings.codexCommand,
        sandbox: parts.settings.codexSandbox,
        silenceMs: silenceOf(parts),
      }),
    remedy: '',
  },
  demo: { make: createDemoAgent, remedy: '' },
} as const satisfies Readonly<Record<string, Member>>

const silenceOf = ({ settings }: AgentParts): number => settings.agentSilenceMinutes * 60_000

/** By name, in the order in which a default is looked for. */
export const createAgents = (parts: AgentParts): ReadonlyMap<string, Agent> =>
  new Map(
    Object.entries<Member>(members).flatMap(([name, { make }]) => {
      const agent = make(parts)
      const named = agent === undefined ? [] : [[name, agent] as const]
      // Somebody named these, too: they come before what is merely found.
      return name === 'command' ? [...named, ...acpAgents(parts)] : named
    }),
  )

const acpAgents = (parts: AgentParts): (readonly [string, Agent])[] =>
  parts.settings.acpAgents.map((agent) => [
    agent.name,
    createAcpAgent({
      ...parts,
      ...agent,
      permissions: parts.settings.agentPermissions,
      silenceMs: silenceOf(parts),
    }),
  ])

export type AgentChoice = {
  readonly agents: ReadonlyMap<string, Agent>
  /** What the conversation asked for. */
  readonly wanted: string | undefined
  readonly codebaseDefault: string | undefined
  readonly settings: Pick<Settings, 'agentDefault'>
}

export type ChosenAgent = {
  readonly agent: Agent
  /** Why this one, in words that go on after "agent demo, ". */
  readonly reason: string
}

/** What somebody named, the nearest word first; else the first that can work. A name that nobody knows is an error. */
export const chooseAgent = async (choice: AgentChoice): Promise<ChosenAgent> => {
  const { agents, wanted, codebaseDefault, settings } = choice
  if (wanted !== undefined) return named(agents, wanted, 'chosen in this conversation')
  if (codebaseDefault !== undefined) return named(agents, codebaseDefault, "this repository's default")
  if (settings.agentDefault !== undefined) {
    return named(agents, settings.agentDefault, 'the configured default (COPPICE_AGENT or agent.default)')
  }
  return firstReady(agents)
}

const named = (agents: ReadonlyMap<string, Agent>, name: string, reason: string): ChosenAgent => {
  const agent = agents.get(name)
  if (agent !== undefined) return { agent, reason }
  const known = [...agents.keys()].join(', ')
  const member = Object.entries<Member>(members).find(([key]) => key === name)?.[1]
  if (member !== undefined) {
    throw new AppError('not-found', `the agent "${name}" (${reason}) is not set up`, {
      remedy: `${member.remedy}, or choose one of: ${known}`,
    })
  }
  throw new AppError('not-found', `unknown agent "${name.slice(0, 80)}" (${reason})`, {
    remedy: `choose one of: ${known}`,
  })
}

const firstReady = async (agents: ReadonlyMap<string, Agent>): Promise<ChosenAgent> => {
  const passed: string[] = []
  const remedies: Remedy[] = []
  for (const agent of agents.values()) {
    const found = await agent.availability()
    if (found.state === 'ready') {
      const others = passed.length === 0 ? '' : ` (${passed.join('; ')})`
      return { agent, reason: `the first one that is ready${others}` }
    }
    passed.push(`${agent.name}: ${found.problem}`)
    remedies.push(found.remedy)
  }
  throw new AppError('not-found', `no agent is ready: ${passed.join('; ') || 'none is set up'}`, {
    remedy: remedies[0] ?? 'set COPPICE_AGENT_COMMAND to the program to run',
  })
}

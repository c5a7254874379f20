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
  /** Our own variables; each agent receives only those its list names. */
  readonly ownEnvironment: Readonly<Record<string, string | undefined>>
  /** In the data directory, for context files given to agents. */
  readonly contextDirectory: string
}

type AgentFactory = {
  /** Undefined if it isn't configured. */
  readonly create: (parts: AgentParts) => Agent | undefined
  /** How to configure it. */
  readonly remedy: string
}

/** In the order a default is chosen: explicitly configured first, the demo last. */
const factories = {
  command: {
    create: (parts) => {
      const command = parts.settings.agentCommand
      return command === undefined ? undefined : createCommandAgent({ ...parts, command })
    },
    remedy: 'set COPPICE_AGENT_COMMAND (or agent.command in config.yaml) to the program to run',
  },
  claude: {
    create: (parts) =>
      createClaudeAgent({
        ...parts,
        command: parts.settings.claudeCommand,
        permissionMode: parts.settings.claudePermissionMode,
        permissions: parts.settings.agentPermissions,
        silenceMs: silenceOf(parts),
      }),
    remedy: '',
  },
  codex: {
    create: (parts) =>
      createCodexAgent({
        ...parts,
        command: parts.settings.codexCommand,
        sandbox: parts.settings.codexSandbox,
        silenceMs: silenceOf(parts),
      }),
    remedy: '',
  },
  demo: { create: createDemoAgent, remedy: '' },
} as const satisfies Readonly<Record<string, AgentFactory>>

/** Those with a name of their own; an agent of the Agent Client Protocol has the name that its user gives it. */
export const agentNames: readonly string[] = Object.keys(factories)

const silenceOf = ({ settings }: AgentParts): number => settings.agentSilenceMinutes * 60_000

/** By name, in the order a default is chosen. */
export const createAgents = (parts: AgentParts): ReadonlyMap<string, Agent> =>
  new Map(
    Object.entries<AgentFactory>(factories).flatMap(([name, { create }]) => {
      const agent = create(parts)
      const entry = agent === undefined ? [] : [[name, agent] as const]
      // Explicitly configured too, so before agents that are merely installed.
      return name === 'command' ? [...entry, ...acpAgents(parts)] : entry
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
  /** Chosen in the conversation. */
  readonly wanted: string | undefined
  readonly codebaseDefault: string | undefined
  readonly settings: Pick<Settings, 'agentDefault'>
}

export type ChosenAgent = {
  readonly agent: Agent
  /** Why this one; follows "agent demo, ". */
  readonly reason: string
}

/** The most specific explicit choice, else the first agent that is ready. An unknown name is an error. */
export const chooseAgent = async (choice: AgentChoice): Promise<ChosenAgent> => {
  const { agents, wanted, codebaseDefault, settings } = choice
  if (wanted !== undefined) return agentNamed(agents, wanted, 'chosen in this conversation')
  if (codebaseDefault !== undefined) return agentNamed(agents, codebaseDefault, "this repository's default")
  if (settings.agentDefault !== undefined) {
    return agentNamed(agents, settings.agentDefault, 'the configured default (COPPICE_AGENT or agent.default)')
  }
  return firstReady(agents)
}

const agentNamed = (agents: ReadonlyMap<string, Agent>, name: string, reason: string): ChosenAgent => {
  const agent = agents.get(name)
  if (agent !== undefined) return { agent, reason }
  const known = [...agents.keys()].join(', ')
  const factory = Object.entries<AgentFactory>(factories).find(([key]) => key === name)?.[1]
  if (factory !== undefined) {
    throw new AppError('not-found', `the agent "${name}" (${reason}) is not set up`, {
      remedy: `${factory.remedy}, or choose one of: ${known}`,
    })
  }
  throw new AppError('not-found', `unknown agent "${name.slice(0, 80)}" (${reason})`, {
    remedy: `choose one of: ${known}`,
  })
}

const firstReady = async (agents: ReadonlyMap<string, Agent>): Promise<ChosenAgent> => {
  const skipped: string[] = []
  const remedies: Remedy[] = []
  for (const agent of agents.values()) {
    const found = await agent.availability()
    if (found.state === 'ready') {
      const others = skipped.length === 0 ? '' : ` (${skipped.join('; ')})`
      return { agent, reason: `the first one that is ready${others}` }
    }
    skipped.push(`${agent.name}: ${found.problem}`)
    remedies.push(found.remedy)
  }
  throw new AppError('not-found', `no agent is ready: ${skipped.join('; ') || 'none is set up'}`, {
    remedy: remedies[0] ?? 'set COPPICE_AGENT_COMMAND to the program to run',
  })
}

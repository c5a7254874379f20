import type { Rule } from './rules.ts'

/** An agent that speaks the Agent Client Protocol, under the name that the user gave it. */
export type AcpAgentSettings = {
  readonly name: string
  /** The program and its arguments; no shell comes between. */
  readonly command: readonly string[]
  /** Variables of ours that it is granted beside the allow-list: the key of its model, for one. */
  readonly variables: Readonly<Record<string, string>>
  /** Whether it may run in the tree of a fork, where a stranger may have put settings for it. */
  readonly forks: boolean
}

export type Permissions = 'allow' | 'ask' | 'deny'

export const permissions: Rule<Permissions> = {
  expected: 'allow, ask or deny',
  read: (value) => (value === 'allow' || value === 'ask' || value === 'deny' ? value : undefined),
}

/** `agent.acp`: a section of names. Which values the granted variables have is filled in by whoever has them. */
export const acpAgents: Rule<readonly AcpAgentSettings[]> = {
  expected:
    "a section with one entry per agent, such as gemini: { command: [gemini, --acp], variables: [GEMINI_API_KEY] }; a name has lowercase letters, digits and dashes, and can't be acp, claude, codex, command or demo; a variable can't belong to Coppice or its platforms",
  read: (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    const entries = Object.entries(value as Record<string, unknown>).map(([name, entry]) => acpAgent(name, entry))
    return entries.every((entry) => entry !== undefined) && entries.length <= MOST_AGENTS ? entries : undefined
  },
}

/** The values of the variables that each agent is granted; one that is not set is not there. */
export const withVariables = (
  agents: readonly AcpAgentSettings[],
  env: Readonly<Record<string, string | undefined>>,
): readonly AcpAgentSettings[] =>
  agents.map(({ variables, ...agent }) => ({
    ...agent,
    variables: Object.fromEntries(
      Object.keys(variables).flatMap((name) => {
        const value = env[name]
        return value === undefined ? [] : [[name, value] as const]
      }),
    ),
  }))

const MOST_AGENTS = 50

const acpAgent = (name: string, entry: unknown): AcpAgentSettings | undefined => {
  if (!/^[a-z][a-z0-9-]{0,31}$/.test(name) || taken.has(name)) return undefined
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) return undefined
  const { command, variables = [], forks = false, ...unknown } = entry as Record<string, unknown>
  if (Object.keys(unknown).length > 0 || !isCommand(command) || !isNames(variables)) return undefined
  if (typeof forks !== 'boolean') return undefined
  return { name, command, variables: Object.fromEntries(variables.map((variable) => [variable, ''])), forks }
}

const taken: ReadonlySet<string> = new Set(['acp', 'claude', 'codex', 'command', 'demo'])

const isCommand = (value: unknown): value is string[] =>
  Array.isArray(value) &&
  value.length > 0 &&
  value.every((word) => typeof word === 'string' && !word.includes('\0')) &&
  value[0] !== ''

/**
 * Threat: a line in the configuration that hands an agent the database, a platform's token or a webhook's secret. A model's
 * key is the agent's own affair; these are ours.
 */
const isNames = (value: unknown): value is string[] =>
  Array.isArray(value) &&
  value.every((name) => typeof name === 'string' && /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !ours.test(name))

const ours = /^(?:COPPICE_.*|GIT_.*|GITHUB_.*|SLACK_.*|DISCORD_.*|TELEGRAM_.*|LD_.*|DYLD_.*|NODE_OPTIONS)$/i

/** `manual` is missing: nobody sits there who could be asked. */
export const claudePermissionModes = ['acceptEdits', 'auto', 'bypassPermissions', 'dontAsk', 'plan'] as const
export type ClaudePermissionMode = (typeof claudePermissionModes)[number]

export const codexSandboxes = ['read-only', 'workspace-write', 'danger-full-access'] as const
export type CodexSandbox = (typeof codexSandboxes)[number]

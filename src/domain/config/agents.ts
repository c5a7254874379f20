import type { Rule } from './rules.ts'

/** An Agent Client Protocol agent, under its user-given name. */
export type AcpAgentSettings = {
  readonly name: string
  /** The program and its arguments, run without a shell. */
  readonly command: readonly string[]
  /** Variables passed to it on top of the allow-list, such as its model's API key. */
  readonly variables: Readonly<Record<string, string>>
  /** Whether it may run in a fork's worktree, where its settings may come from a stranger. */
  readonly forks: boolean
}

export type Permissions = 'allow' | 'ask' | 'deny'

export const permissions: Rule<Permissions> = {
  expected: 'allow, ask or deny',
  read: (value) => (value === 'allow' || value === 'ask' || value === 'deny' ? value : undefined),
}

/** `agent.acp`, keyed by name. `withVariables` fills in the values of the variables. */
export const acpAgents: Rule<readonly AcpAgentSettings[]> = {
  expected:
    "a section with one entry per agent, such as gemini: { command: [gemini, --acp], variables: [GEMINI_API_KEY] }; a name has lowercase letters, digits and dashes, and can't be acp, claude, codex, command or demo; a variable can't belong to Coppice or its platforms",
  read: (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    const entries = Object.entries(value as Record<string, unknown>).map(([name, entry]) => acpAgent(name, entry))
    return entries.every((entry) => entry !== undefined) && entries.length <= MAX_AGENTS ? entries : undefined
  },
}

/** Fills in the values of each agent's variables; unset ones are left out. */
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

const MAX_AGENTS = 50

const acpAgent = (name: string, entry: unknown): AcpAgentSettings | undefined => {
  if (!/^[a-z][a-z0-9-]{0,31}$/.test(name) || reservedNames.has(name)) return undefined
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) return undefined
  const { command, variables = [], forks = false, ...unknown } = entry as Record<string, unknown>
  if (Object.keys(unknown).length > 0 || !isCommand(command) || !areVariableNames(variables)) return undefined
  if (typeof forks !== 'boolean') return undefined
  return { name, command, variables: Object.fromEntries(variables.map((variable) => [variable, ''])), forks }
}

const reservedNames: ReadonlySet<string> = new Set(['acp', 'claude', 'codex', 'command', 'demo'])

const isCommand = (value: unknown): value is string[] =>
  Array.isArray(value) &&
  value.length > 0 &&
  value.every((word) => typeof word === 'string' && !word.includes('\0')) &&
  value[0] !== ''

/**
 * Threat: a line in the configuration that passes an agent the database, a platform's token or a webhook's secret.
 * A model's API key is for the agent; these are not.
 */
const areVariableNames = (value: unknown): value is string[] =>
  Array.isArray(value) &&
  value.every(
    (name) => typeof name === 'string' && /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !reservedVariables.test(name),
  )

const reservedVariables =
  /^(?:COPPICE_.*|GIT_.*|GITHUB_.*|SLACK_.*|DISCORD_.*|TELEGRAM_.*|LD_.*|DYLD_.*|NODE_OPTIONS)$/i

/** `manual` is left out: nobody is there to answer. */
export const claudePermissionModes = ['acceptEdits', 'auto', 'bypassPermissions', 'dontAsk', 'plan'] as const
export type ClaudePermissionMode = (typeof claudePermissionModes)[number]

export const codexSandboxes = ['read-only', 'workspace-write', 'danger-full-access'] as const
export type CodexSandbox = (typeof codexSandboxes)[number]

import {
  acpAgents,
  type AcpAgentSettings,
  type ClaudePermissionMode,
  claudePermissionModes,
  type CodexSandbox,
  codexSandboxes,
  permissions,
  type Permissions,
} from './agents.ts'
import { type ProviderName, providerNames } from '../provider-name.ts'
import { type FleetSettings, fleetSettingTable } from './fleet-settings.ts'
import { anyHooks, type HookSettings } from './hooks.ts'
import * as rule from './rules.ts'
import type { Rule } from './rules.ts'

export type Settings = {
  /** PostgreSQL; undefined: SQLite in the home. */
  readonly databaseUrl: string | undefined
  /** Absolute; undefined: `worktrees/` in the home. Use `worktreeBase`. */
  readonly worktreesBase: string | undefined
  /** Creates new environments. A repository may choose a stricter one. */
  readonly isolationProvider: ProviderName
  readonly spares: number
  /** A fetch younger than this is fresh enough to create from. */
  readonly fetchFreshSeconds: number
  readonly worktreesPerCodebase: number
  readonly concurrentConversations: number
  /** Longer runs are stopped. Time waiting for a person doesn't count. */
  readonly runMinutes: number
  /** 0: everything idle is stale. */
  readonly staleDays: number
  readonly cleanupIntervalHours: number
  readonly restoreDays: number
  /** Ignored files are kept, smallest first, up to this size. */
  readonly restoreIgnoredBytes: number
  readonly eventDays: number
  /** A conversation holds its environment until it is stale; merged work only this long after the last message. */
  readonly holdMergedHours: number
  /** Ignored directories that restore points skip, since a command can recreate them. */
  readonly regenerable: readonly string[]
  readonly agentDefault: string | undefined
  readonly agentCommand: string | undefined
  /** A program on the PATH, or its path. */
  readonly claudeCommand: string
  readonly claudePermissionMode: ClaudePermissionMode
  readonly codexCommand: string
  /** undefined: `workspace-write`, or none where only a container can isolate it. */
  readonly codexSandbox: CodexSandbox | undefined
  readonly acpAgents: readonly AcpAgentSettings[]
  /** The answer to an agent's permission request inside its environment. */
  readonly agentPermissions: Permissions
  /** An agent silent for this long, with no tool running, has stalled. */
  readonly agentSilenceMinutes: number
  readonly questionMinutes: number
  /** Undefined: no limit. */
  readonly budgetConversationUsd: number | undefined
  readonly budgetDayUsd: number | undefined
  readonly budgetConversationTurns: number | undefined
  readonly budgetDayTurns: number | undefined
  readonly hooks: readonly HookSettings[]
} & FleetSettings

export type Setting<T> = {
  readonly default: T
  readonly key?: string
  readonly variable?: string
  readonly rule: Rule<NonNullable<T>>
  /** Shown in docs/configuration.md, which a test generates from this table. */
  readonly about: string
}

const days = (min: number, example: number): Rule<number> => rule.number(min, 36_500, example)

const dollars = rule.number(0, 1_000_000, 5)
const turns = rule.wholeNumber(0, 10_000_000, 200)

/** Every setting in the home: its key in `config.yaml`, its variable, its rule. */
export const settingTable: { readonly [Name in keyof Settings]: Setting<Settings[Name]> } = {
  databaseUrl: {
    default: undefined,
    key: 'database.url',
    variable: 'COPPICE_DATABASE_URL',
    rule: rule.databaseUrl,
    about: 'The PostgreSQL database to keep state in. Without it, Coppice uses SQLite in its home directory.',
  },
  worktreesBase: {
    default: undefined,
    key: 'worktrees.base',
    variable: 'WORKTREE_BASE',
    rule: rule.directory,
    about: "The directory that worktrees are created in. Default: `worktrees` in Coppice's home directory.",
  },
  isolationProvider: {
    default: 'worktree',
    key: 'isolation.provider',
    variable: 'COPPICE_ISOLATION',
    rule: rule.oneOf(providerNames),
    about:
      'What a new environment is: `worktree`, a linked worktree that shares the git directory of your repository, or `clone`, a clone with its own refs, configuration and hooks, so git commands run in it never change your repository.',
  },
  spares: {
    default: 1,
    key: 'worktrees.spares',
    rule: rule.wholeNumber(0, 100, 1),
    about: 'How many spare worktrees to keep ready per codebase, so that creating one is instant.',
  },
  fetchFreshSeconds: {
    default: 60,
    key: 'worktrees.fetchSeconds',
    rule: rule.number(0, 86_400, 60),
    about: 'How old the last fetch may be, in seconds, before creating a worktree fetches again.',
  },
  worktreesPerCodebase: {
    default: 25,
    key: 'limits.worktreesPerCodebase',
    variable: 'MAX_WORKTREES_PER_CODEBASE',
    rule: rule.wholeNumber(1, 100_000, 25),
    about: 'The maximum number of worktrees per codebase. At the limit, merged ones are removed first.',
  },
  concurrentConversations: {
    default: 10,
    key: 'limits.concurrentConversations',
    variable: 'MAX_CONCURRENT_CONVERSATIONS',
    rule: rule.wholeNumber(1, 10_000, 10),
    about: 'The maximum number of agents running at once. Further messages wait.',
  },
  // No 0 for "no limit": a run that never ends holds its slot. 20 days is close to a timer's maximum.
  runMinutes: {
    default: 120,
    key: 'limits.runMinutes',
    rule: rule.number(0.01, 30_000, 120),
    about: 'The longest an agent may work on one message. Time spent waiting for a person does not count.',
  },
  staleDays: {
    default: 14,
    key: 'cleanup.staleDays',
    variable: 'STALE_THRESHOLD_DAYS',
    rule: days(0, 14),
    about:
      'A worktree unused for this many days is stale and may be cleaned up. A conversation also keeps its worktree for that long after its last message.',
  },
  // A timer of more than 2^31 ms (596 hours) fires immediately, over and over.
  cleanupIntervalHours: {
    default: 6,
    key: 'cleanup.intervalHours',
    variable: 'CLEANUP_INTERVAL_HOURS',
    rule: rule.number(0.01, 500, 6),
    about: 'How often the server cleans up, in hours.',
  },
  // With less than a day, a removal could be final before anybody has seen it.
  restoreDays: {
    default: 30,
    key: 'cleanup.restoreDays',
    rule: days(1, 30),
    about: 'How many days a removed worktree can be restored.',
  },
  restoreIgnoredBytes: {
    default: 50 * 1024 * 1024,
    key: 'cleanup.restoreIgnoredMegabytes',
    rule: rule.mapped(rule.number(0, 1_000_000, 50), (megabytes) => Math.round(megabytes * 1024 * 1024)),
    about: 'How many megabytes of ignored files a restore point keeps, smallest first.',
  },
  eventDays: {
    default: 30,
    key: 'cleanup.eventDays',
    rule: days(1, 30),
    about: "How many days the fleet's events are kept for `coppice events`.",
  },
  holdMergedHours: {
    default: 1,
    key: 'cleanup.holdMergedHours',
    rule: rule.number(0, 876_000, 1),
    about: 'How many hours a conversation keeps its worktree after its last message once the work is merged.',
  },
  regenerable: {
    // Only names that tools create and people don't: `dist`, `build` and `vendor` are sometimes written by hand.
    default: [
      'node_modules',
      'bower_components',
      'target',
      '.venv',
      'venv',
      '__pycache__',
      '.tox',
      '.nox',
      '.mypy_cache',
      '.pytest_cache',
      '.ruff_cache',
      '.gradle',
      '.next',
      '.nuxt',
      '.svelte-kit',
      '.turbo',
      '.parcel-cache',
    ],
    key: 'cleanup.regenerable',
    rule: rule.list(rule.directoryName, 200),
    about: 'Ignored directories that a command can recreate. Restore points leave them out.',
  },
  agentDefault: {
    default: undefined,
    key: 'agent.default',
    variable: 'COPPICE_AGENT',
    rule: rule.text,
    about:
      'The agent for conversations and codebases that have no agent set. By default, Coppice uses the first one that is ready.',
  },
  agentCommand: {
    default: undefined,
    key: 'agent.command',
    variable: 'COPPICE_AGENT_COMMAND',
    rule: rule.command,
    about: 'The shell command that the agent named `command` runs.',
  },
  claudeCommand: {
    default: 'claude',
    key: 'agent.claude.command',
    variable: 'COPPICE_CLAUDE_COMMAND',
    rule: rule.text,
    about: 'The Claude Code program: a name on the `PATH`, or a path.',
  },
  claudePermissionMode: {
    // The one that also works as root, where Claude Code refuses to bypass permissions.
    default: 'acceptEdits',
    key: 'agent.claude.permissionMode',
    rule: rule.oneOf(claudePermissionModes),
    about: 'The permission mode that Claude Code is started with.',
  },
  codexCommand: {
    default: 'codex',
    key: 'agent.codex.command',
    variable: 'COPPICE_CODEX_COMMAND',
    rule: rule.text,
    about: 'The Codex program: a name on the `PATH`, or a path.',
  },
  codexSandbox: {
    default: undefined,
    key: 'agent.codex.sandbox',
    rule: rule.oneOf(codexSandboxes),
    about:
      'The sandbox that Codex runs its commands in. Default: `workspace-write`, except in a container where it cannot run.',
  },
  acpAgents: {
    default: [],
    key: 'agent.acp',
    rule: acpAgents,
    about: 'Agents that speak the Agent Client Protocol, by the name you give them.',
  },
  agentPermissions: {
    default: 'allow',
    key: 'agent.permissions',
    rule: permissions,
    about:
      'Whether agents may act inside their worktree without asking: `allow`, `ask` (in the thread) or `deny`. What it means for each agent is in its page under docs/agents.',
  },
  agentSilenceMinutes: {
    default: 30,
    key: 'agent.silenceMinutes',
    rule: rule.number(0.01, 10_000, 30),
    about: 'An agent that prints nothing for this long, with no tool running, is stopped.',
  },
  questionMinutes: {
    default: 1440,
    key: 'agent.questionMinutes',
    rule: rule.number(0.01, 10_000, 1440),
    about: "How long an agent's question waits for an answer in the thread. After that it counts as a no.",
  },
  budgetConversationUsd: {
    default: undefined,
    key: 'budget.conversationUsd',
    rule: dollars,
    about: 'The maximum cost of one conversation, in US dollars.',
  },
  budgetDayUsd: {
    default: undefined,
    key: 'budget.dayUsd',
    rule: dollars,
    about: 'The maximum cost of all conversations per day, in US dollars.',
  },
  budgetConversationTurns: {
    default: undefined,
    key: 'budget.conversationTurns',
    rule: turns,
    about: 'The maximum number of agent turns in one conversation.',
  },
  budgetDayTurns: {
    default: undefined,
    key: 'budget.dayTurns',
    rule: turns,
    about: 'The maximum number of agent turns per day, in all conversations.',
  },
  ...fleetSettingTable,
  hooks: {
    default: [],
    key: 'hooks',
    rule: anyHooks,
    about: 'What to do when something happens in the fleet, as a list with the keys below.',
  },
}

export const defaultSettings = Object.fromEntries(
  Object.entries(settingTable).map(([name, setting]) => [name, setting.default]),
) as Settings

import { join, normalize } from 'node:path'
import {
  acpAgents,
  type AcpAgentSettings,
  type ClaudePermissionMode,
  claudePermissionModes,
  type CodexSandbox,
  codexSandboxes,
  permissions,
  type Permissions,
  withVariables,
} from './config-agents.ts'
import type { Known } from './config-file.ts'
import * as rule from './config-rules.ts'
import type { Rule } from './config-rules.ts'
import { AppError } from './errors.ts'
import { maxGlobs } from './glob.ts'
import { trimEndOf } from './trim-end.ts'

export type Env = Readonly<Record<string, string | undefined>>

export type Settings = {
  /** PostgreSQL; undefined: SQLite in the home. */
  readonly databaseUrl: string | undefined
  /** Absolute; undefined: `worktrees/` in the home. Ask `worktreeBase`. */
  readonly worktreesBase: string | undefined
  readonly spares: number
  /** A fetch this young is fresh enough to create from. */
  readonly fetchFreshSeconds: number
  readonly worktreesPerCodebase: number
  readonly concurrentConversations: number
  /** A run that works for longer is ended. Waiting for a person does not count. */
  readonly runMinutes: number
  /** 0: everything idle is stale. */
  readonly staleDays: number
  readonly cleanupIntervalHours: number
  readonly restoreDays: number
  /** Ignored files are kept, smallest first, up to this. */
  readonly restoreIgnoredBytes: number
  /** A conversation holds its environment this long after its last message; the second is for merged work. */
  readonly holdDays: number
  readonly holdMergedHours: number
  /** Names of ignored directories that no restore point keeps, since a command makes them again. */
  readonly regenerable: readonly string[]
  readonly agentDefault: string | undefined
  readonly agentCommand: string | undefined
  /** A program on the PATH, or its path. */
  readonly claudeCommand: string
  readonly claudePermissionMode: ClaudePermissionMode
  readonly codexCommand: string
  /** undefined: writing where the work is, unless a container is the only fence there can be. */
  readonly codexSandbox: CodexSandbox | undefined
  readonly acpAgents: readonly AcpAgentSettings[]
  /** What an agent that asks before it acts is told, where it stays inside its environment. */
  readonly agentPermissions: Permissions
  /** An agent that says nothing for so long, with no tool at work, has stalled. */
  readonly agentSilenceMinutes: number
  /** Undefined: no limit. */
  readonly budgetConversationUsd: number | undefined
  readonly budgetDayUsd: number | undefined
  readonly budgetConversationTurns: number | undefined
  readonly budgetDayTurns: number | undefined
  readonly githubToken: string | undefined
}

export const defaultSettings: Settings = {
  databaseUrl: undefined,
  worktreesBase: undefined,
  spares: 1,
  fetchFreshSeconds: 60,
  worktreesPerCodebase: 25,
  concurrentConversations: 10,
  runMinutes: 120,
  staleDays: 14,
  cleanupIntervalHours: 6,
  restoreDays: 30,
  restoreIgnoredBytes: 50 * 1024 * 1024,
  holdDays: 14,
  holdMergedHours: 1,
  // Only names that tools make and people do not: `dist`, `build` and `vendor` are sometimes written by hand.
  regenerable: [
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
  agentDefault: undefined,
  agentCommand: undefined,
  claudeCommand: 'claude',
  // The one that works as root too, where the program refuses to bypass its permissions.
  claudePermissionMode: 'acceptEdits',
  codexCommand: 'codex',
  codexSandbox: undefined,
  acpAgents: [],
  agentPermissions: 'allow',
  agentSilenceMinutes: 30,
  budgetConversationUsd: undefined,
  budgetDayUsd: undefined,
  budgetConversationTurns: undefined,
  budgetDayTurns: undefined,
  githubToken: undefined,
}

/**
 * The home's `config.yaml` with the variables over it. `homeFile` only names the file in an error.
 * YAML is loaded when there is a file to read: most starts have none.
 */
export const resolveSettings = async (from: { homeText?: string; homeFile: string; env: Env }): Promise<Settings> => {
  const file =
    from.homeText === undefined
      ? new Map<string, unknown>()
      : (await import('./config-file.ts')).readConfigFile(from.homeText, from.homeFile, homeKeys())
  const given = Object.entries(settingTable).map(([name, setting]) => {
    const value = fromVariable(setting, from.env) ?? (setting.key === undefined ? undefined : file.get(setting.key))
    return [name, value] as const
  })
  const settings = { ...defaultSettings, ...Object.fromEntries(given.filter(([, value]) => value !== undefined)) }
  return {
    ...settings,
    acpAgents: withVariables(settings.acpAgents, from.env),
    worktreesBase: settings.worktreesBase === undefined ? undefined : expandHome(settings.worktreesBase, from.env),
  }
}

export type RepoConfig = {
  readonly base: string | undefined
  /** Globs of untracked or ignored files that a new environment gets from the canonical checkout. */
  readonly copy: readonly string[]
  /** Paths that point into the home's shared area. */
  readonly link: readonly string[]
  /** Globs of ignored files that removal treats as work when they differ from their source. */
  readonly keep: readonly string[]
  readonly setup: readonly string[]
  readonly teardown: readonly string[]
  readonly submodules: boolean
  /** Variables that each get a leased, free port. Which port is Coppice's choice: a wish could not be kept twice. */
  readonly ports: readonly string[]
  /** Setup and teardown also run in the tree of a pull request from a fork. */
  readonly allowForks: boolean
}

export const defaultRepoConfig: RepoConfig = {
  base: undefined,
  copy: [],
  link: [],
  keep: [],
  setup: [],
  teardown: [],
  submodules: true,
  ports: [],
  allowForks: false,
}

/** The repository's `.coppice/config.yaml`; `file` only names it in an error. */
export const parseRepoConfig = async (text: string, file: string): Promise<RepoConfig> => {
  const { readConfigFile } = await import('./config-file.ts')
  const found = readConfigFile(text, file, { keys: new Map(Object.entries(repoRules)), opaque: [] })
  const given = [...found].map(([key, value]) => [key.slice('worktree.'.length), value] as const)
  return { ...defaultRepoConfig, ...Object.fromEntries(given) }
}

/** Where all state lives. In a container the user's home is often not a volume, so it is `/.coppice` there. */
export const homeDirectory = (env: Env, exists: (path: string) => boolean): string => {
  const given = env['COPPICE_HOME']
  if (given !== undefined && given !== '') {
    if (rule.directory.read(given) !== undefined) return expandHome(given, env)
    throw new AppError('config-invalid', `COPPICE_HOME is ${JSON.stringify(given)}`, {
      remedy: `COPPICE_HOME must be ${rule.directory.expected}`,
    })
  }
  return ['/.dockerenv', '/run/.containerenv'].some(exists) ? '/.coppice' : expandHome('~/.coppice', env)
}

export const worktreeBase = (settings: Pick<Settings, 'worktreesBase'>, home: string): string =>
  settings.worktreesBase ?? join(home, 'worktrees')

type Setting<T> = { readonly key?: string; readonly variable?: string; readonly rule: Rule<T> }

const days = (min: number, example: number): Rule<number> => rule.number(min, 36_500, example)

const dollars = rule.number(0, 1_000_000, 5)
const turns = rule.wholeNumber(0, 10_000_000, 200)

const settingTable: { readonly [Name in keyof Settings]: Setting<NonNullable<Settings[Name]>> } = {
  databaseUrl: { key: 'database.url', variable: 'COPPICE_DATABASE_URL', rule: rule.databaseUrl },
  worktreesBase: { key: 'worktrees.base', variable: 'WORKTREE_BASE', rule: rule.directory },
  spares: { key: 'worktrees.spares', rule: rule.wholeNumber(0, 100, 1) },
  fetchFreshSeconds: { key: 'worktrees.fetchSeconds', rule: rule.number(0, 86_400, 60) },
  worktreesPerCodebase: {
    key: 'limits.worktreesPerCodebase',
    variable: 'MAX_WORKTREES_PER_CODEBASE',
    rule: rule.wholeNumber(1, 100_000, 25),
  },
  concurrentConversations: {
    key: 'limits.concurrentConversations',
    variable: 'MAX_CONCURRENT_CONVERSATIONS',
    rule: rule.wholeNumber(1, 10_000, 10),
  },
  // No 0 for "no limit": a run that never ends keeps its place. 20 days is near what a timer can count.
  runMinutes: { key: 'limits.runMinutes', rule: rule.number(0.01, 30_000, 120) },
  staleDays: { key: 'cleanup.staleDays', variable: 'STALE_THRESHOLD_DAYS', rule: days(0, 14) },
  // A timer of more than 2^31 ms (596 hours) fires at once, over and over.
  cleanupIntervalHours: {
    key: 'cleanup.intervalHours',
    variable: 'CLEANUP_INTERVAL_HOURS',
    rule: rule.number(0.01, 500, 6),
  },
  // Less than a day would let a removal be final before anybody has seen it.
  restoreDays: { key: 'cleanup.restoreDays', rule: days(1, 30) },
  restoreIgnoredBytes: {
    key: 'cleanup.restoreIgnoredMegabytes',
    rule: rule.mapped(rule.number(0, 1_000_000, 50), (megabytes) => Math.round(megabytes * 1024 * 1024)),
  },
  holdDays: { key: 'cleanup.holdDays', rule: days(0, 14) },
  holdMergedHours: { key: 'cleanup.holdMergedHours', rule: rule.number(0, 876_000, 1) },
  regenerable: { key: 'cleanup.regenerable', rule: rule.list(rule.directoryName, 200) },
  agentDefault: { key: 'agent.default', variable: 'COPPICE_AGENT', rule: rule.text },
  agentCommand: { key: 'agent.command', variable: 'COPPICE_AGENT_COMMAND', rule: rule.command },
  claudeCommand: { key: 'agent.claude.command', variable: 'COPPICE_CLAUDE_COMMAND', rule: rule.text },
  claudePermissionMode: { key: 'agent.claude.permissionMode', rule: rule.oneOf(claudePermissionModes) },
  codexCommand: { key: 'agent.codex.command', variable: 'COPPICE_CODEX_COMMAND', rule: rule.text },
  codexSandbox: { key: 'agent.codex.sandbox', rule: rule.oneOf(codexSandboxes) },
  acpAgents: { key: 'agent.acp', rule: acpAgents },
  agentPermissions: { key: 'agent.permissions', rule: permissions },
  agentSilenceMinutes: { key: 'agent.silenceMinutes', rule: rule.number(0.01, 10_000, 30) },
  budgetConversationUsd: { key: 'budget.conversationUsd', rule: dollars },
  budgetDayUsd: { key: 'budget.dayUsd', rule: dollars },
  budgetConversationTurns: { key: 'budget.conversationTurns', rule: turns },
  budgetDayTurns: { key: 'budget.dayTurns', rule: turns },
  // No key: a token in a file that people show each other is a token that leaks.
  githubToken: { variable: 'GITHUB_TOKEN', rule: { ...rule.text, secret: true } },
}

const repoRules: { readonly [Name in keyof RepoConfig as `worktree.${Name}`]: Rule<NonNullable<RepoConfig[Name]>> } = {
  'worktree.base': rule.base,
  'worktree.copy': rule.list(rule.relativeGlob, maxGlobs),
  'worktree.link': rule.list(rule.relativePath, 200),
  'worktree.keep': rule.list(rule.relativeGlob, maxGlobs),
  'worktree.setup': rule.list(rule.command, 100),
  'worktree.teardown': rule.list(rule.command, 100),
  'worktree.submodules': rule.flag,
  'worktree.ports': rule.list(rule.variableName, 20),
  'worktree.allowForks': rule.flag,
}

/** `platforms` belongs to the platforms, each of which knows its own keys. */
const homeKeys = (): Known => ({
  keys: new Map(Object.values(settingTable).flatMap(({ key, rule }) => (key === undefined ? [] : [[key, rule]]))),
  opaque: ['platforms'],
})

/** An empty variable is one that is not set: `WORKTREE_BASE= coppice …`. */
const fromVariable = (setting: Setting<unknown>, env: Env): unknown => {
  const text = setting.variable === undefined ? undefined : env[setting.variable]?.trim()
  if (setting.variable === undefined || text === undefined || text === '') return undefined
  return rule.checked(setting.rule, setting.rule.fromText?.(text) ?? text, setting.variable)
}

const expandHome = (path: string, env: Env): string => {
  if (!path.startsWith('~')) return withoutSlash(normalize(path))
  const home = env['HOME']
  if (home === undefined || !home.startsWith('/')) {
    throw new AppError('config-invalid', `${path} cannot be found: HOME is not set`, {
      remedy: 'set HOME, or COPPICE_HOME to an absolute path',
    })
  }
  return withoutSlash(join(home, path.slice(1)))
}

const withoutSlash = (path: string): string => (path === '/' ? path : trimEndOf(path, '/'))

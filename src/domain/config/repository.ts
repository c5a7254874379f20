import type { KnownKeys } from './file.ts'
import * as rule from './rules.ts'
import type { Rule } from './rules.ts'
import { type ProviderName, providerNames } from '../provider-name.ts'
import { maxGlobs } from '../glob.ts'
import { type LandingStrategy, landingStrategies } from '../fleet/landing.ts'

/** What the repository's file says, with defaults for the rest. */
export type RepoConfig = RepoSettings & {
  /** The file has a section `landing`. */
  readonly configuresLanding: boolean
}

export type RepoSettings = {
  readonly base: string | undefined
  /** Undefined: use the home's setting. */
  readonly provider: ProviderName | undefined
  /** Globs of untracked or ignored files copied from the canonical checkout. */
  readonly copy: readonly string[]
  /** Paths linked to the home's shared area. */
  readonly link: readonly string[]
  /** Globs of ignored files that block removal when they differ from their source. */
  readonly keep: readonly string[]
  readonly setup: readonly string[]
  readonly teardown: readonly string[]
  readonly submodules: boolean
  /** Variables that each get a leased free port. Not a fixed one: two environments couldn't both have it. */
  readonly ports: readonly string[]
  /** Run setup and teardown in a fork's pull request too. */
  readonly allowForks: boolean
  /** What plain words that ask for one of the repository's commands do; undefined: nothing. */
  readonly route: 'suggest' | 'run' | undefined
  /** Whether a run that committed opens a pull request by itself. */
  readonly openPullRequests: 'on-request' | 'auto'
  readonly landingStrategy: LandingStrategy
  /** Commands that must succeed before a branch lands. */
  readonly landingGates: readonly string[]
  /** For each gate. */
  readonly landingTimeoutMs: number
  /** How many branches are tested and land together. */
  readonly landingBatch: number
  /** How often a failed gate is run again on the same files. */
  readonly landingRetries: number
  /** How often an item goes back to its agent before a person is asked. */
  readonly landingReturns: number
}

export const defaultRepoConfig: RepoConfig = {
  base: undefined,
  provider: undefined,
  copy: [],
  link: [],
  keep: [],
  setup: [],
  teardown: [],
  submodules: true,
  ports: [],
  allowForks: false,
  route: undefined,
  openPullRequests: 'on-request',
  landingStrategy: 'squash',
  landingGates: [],
  landingTimeoutMs: 20 * 60_000,
  landingBatch: 1,
  landingRetries: 0,
  landingReturns: 2,
  configuresLanding: false,
}

/** The repository's `.coppice/config.yaml`; `file` is only for error messages. */
export const parseRepoConfig = async (text: string, file: string): Promise<RepoConfig> => {
  const { readConfigFile } = await import('./file.ts')
  const found = readConfigFile(text, file, repoKeys())
  const nameOf = new Map(
    Object.entries<RepoSetting<unknown>>(repoTable).map(([name, one]) => [repoKey(name, one), name]),
  )
  const given = [...found].map(([key, value]) => [nameOf.get(key) ?? key, value] as const)
  const configuresLanding = [...found.keys()].some((key) => key.startsWith('landing.'))
  return { ...defaultRepoConfig, ...Object.fromEntries(given), configuresLanding }
}

/** Every setting of a repository, under `worktree` unless its row says otherwise. */
export const repoTable: { readonly [Name in keyof RepoSettings]: RepoSetting<NonNullable<RepoSettings[Name]>> } = {
  base: {
    rule: rule.base,
    about:
      "The branch that new work starts from and is merged into. Default: the one set with `coppice codebase add --base`, else the remote's default branch.",
  },
  provider: {
    rule: rule.oneOf(providerNames),
    about:
      'What a new environment in this repository is: `worktree` or `clone`. It can be stricter than `isolation.provider`, but not less strict.',
  },
  copy: {
    rule: rule.list(rule.relativeGlob, maxGlobs),
    about: 'Untracked or ignored files to copy into a new worktree, such as `.env`.',
  },
  link: {
    rule: rule.list(rule.relativePath, 200),
    about: "Paths that all worktrees share, kept in Coppice's home directory.",
  },
  keep: {
    rule: rule.list(rule.relativeGlob, maxGlobs),
    about: 'Ignored files that count as work: a worktree where they have changed is not removed.',
  },
  setup: {
    rule: rule.list(rule.command, 100),
    about: 'Commands to run in a new worktree. They need your approval: `coppice codebase trust`.',
  },
  teardown: {
    rule: rule.list(rule.command, 100),
    about: 'Commands to run before a worktree is removed. They need your approval too.',
  },
  submodules: { rule: rule.flag, about: 'Whether to check out submodules in a new worktree.' },
  ports: {
    rule: rule.list(rule.variableName, 20),
    about: 'Environment variables to set, each to a free port reserved for the worktree.',
  },
  allowForks: {
    rule: rule.flag,
    about: 'Whether setup and teardown also run in the worktree of a pull request from a fork.',
  },
  route: {
    section: 'commands',
    rule: rule.oneOf(['suggest', 'run']),
    about:
      "What happens when a message asks for one of the repository's commands in plain words: `suggest` offers the command, `run` runs it if it is read-only and clearly meant. By default, such a message goes to the agent like any other.",
  },
  openPullRequests: {
    section: 'pullRequests',
    key: 'open',
    rule: rule.oneOf(['on-request', 'auto']),
    about:
      'Whether a run that committed also pushes its branch and opens a draft pull request: `auto`, or only `on-request` (`/pr`).',
  },
  landingStrategy: {
    section: 'landing',
    key: 'strategy',
    rule: rule.oneOf(landingStrategies),
    about:
      'How a branch lands: as one commit (`squash`), with a merge commit (`merge`), or commit by commit (`rebase`).',
  },
  landingGates: {
    section: 'landing',
    key: 'gates',
    rule: rule.list(rule.command, 50),
    about:
      'Commands that must succeed before a branch lands, in this order. They need your approval: `coppice codebase trust`.',
  },
  landingTimeoutMs: {
    section: 'landing',
    key: 'timeout',
    rule: rule.duration(1_000, 24 * 60 * 60_000, '20m'),
    about: 'How long each gate may take.',
  },
  landingBatch: {
    section: 'landing',
    key: 'batch',
    rule: rule.wholeNumber(1, 50, 8),
    about:
      'How many branches are tested together and land together. If their gates fail, Coppice finds the branch that is to blame, and the others land.',
  },
  landingRetries: {
    section: 'landing',
    key: 'retries',
    rule: rule.wholeNumber(0, 5, 1),
    about: 'How often a failed gate is run again on the same files. If it then succeeds, it is reported as flaky.',
  },
  landingReturns: {
    section: 'landing',
    key: 'returns',
    rule: rule.wholeNumber(0, 20, 2),
    about:
      'How often an item that conflicts or fails its gates goes back to its agent. After that, it waits for a person.',
  },
}

type RepoSetting<T> = {
  readonly rule: Rule<T>
  readonly about: string
  readonly section?: string
  /** If it isn't the setting's name. */
  readonly key?: string
}

/** As written in the file, such as `worktree.setup`. */
export const repoKey = (
  name: string,
  { section = 'worktree', key = name }: { readonly section?: string; readonly key?: string },
): string => `${section}.${key}`

const repoKeys = (): KnownKeys => ({
  keys: new Map(
    Object.entries<RepoSetting<unknown>>(repoTable).map(([name, setting]) => [repoKey(name, setting), setting.rule]),
  ),
  opaque: [],
})

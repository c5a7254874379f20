import { join } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { toAppError } from '../../domain/errors.ts'
import type { Repo } from '../../domain/tree.ts'
import { readWorktreeLink } from '../../git/admin-dir.ts'
import type { Redact } from '../../process/redaction/redact.ts'
import { type Budget, createBudget } from './git-budget.ts'
import { BRANCH_REMOTE, entriesOf, type Entry, type FileNote, readOwnConfig, remoteHash } from './git-config-file.ts'
import { type ConfigSource, hooksElsewhere, includedBy, userConfigs, type UserFiles } from './git-follow.ts'
import { hooksIn, type Named, submodulesIn } from './git-places.ts'
import { createPrinter, type Printer } from './git-print.ts'

/** Plain values, stored between runs. */
export type GitLook =
  | {
      readonly configs: Record<string, readonly Entry[]>
      readonly files: Record<string, string>
      /** Notes on the configuration files themselves. Missing in snapshots of older versions. */
      readonly notes?: Record<string, readonly FileNote[]>
      /** Files outside the repository that those refer to. Missing in snapshots of older versions. */
      readonly followed?: {
        readonly configs: Record<string, readonly Entry[]>
        readonly files: Record<string, string>
      }
    }
  | { readonly problem: string }

export type LookOptions = { readonly user: UserFiles; readonly redact: Redact }

/**
 * Checks git's own files. An agent can write the repository's configuration and hooks, which the user's next `git
 * status` would obey. Coppice's git calls ignore them, but the user is warned. Reads only a few files, starts no
 * program.
 */
export const lookAtRepository = (
  { repoPath, checkoutPath }: Pick<Codebase, 'repoPath' | 'checkoutPath'>,
  options: LookOptions,
): Promise<GitLook> =>
  look({
    configs: [
      ["the repository's configuration", join(repoPath, 'config')],
      ["the main worktree's configuration", join(repoPath, 'config.worktree')],
    ],
    files: (budget) => [
      ['`info/attributes` of the repository', join(repoPath, 'info', 'attributes')],
      ['`objects/info/alternates` of the repository', join(repoPath, 'objects', 'info', 'alternates')],
      ...hooksIn(repoPath, budget),
    ],
    gitDir: repoPath,
    hooksFrom: checkoutPath ?? repoPath,
    options,
  })

/** An environment's own repository. A user's `git status` there would obey it. */
export const lookAtOwnRepository = (
  { commonDir: gitDir }: Repo,
  { path }: Pick<IsolatedEnvironment, 'path'>,
  options: LookOptions,
): Promise<GitLook> =>
  look({
    configs: [["this clone's configuration", join(gitDir, 'config')]],
    files: (budget) => [
      ['`info/attributes` of this clone', join(gitDir, 'info', 'attributes')],
      ['`objects/info/alternates` of this clone', join(gitDir, 'objects', 'info', 'alternates')],
      ['`coppice` in the git directory of this clone', join(gitDir, 'coppice')],
      ...hooksIn(gitDir, budget),
    ],
    gitDir,
    hooksFrom: path,
    options,
  })

/** The worktree's own configuration, and its links to and from the repository. */
export const lookAtWorktree = async (
  { repoPath }: Pick<Codebase, 'repoPath'>,
  { path, adminName }: Pick<IsolatedEnvironment, 'path' | 'adminName'>,
  options: LookOptions,
): Promise<GitLook> => {
  // Use the recorded name: an agent can rewrite the `.git` file.
  const adminDir =
    adminName === undefined
      ? await readWorktreeLink(path).catch(() => undefined)
      : join(repoPath, 'worktrees', adminName)
  const pointer: Named = ['the `.git` file of this worktree', join(path, '.git')]
  if (adminDir === undefined) return look({ configs: [], files: () => [pointer], options })
  return look({
    configs: [["this worktree's configuration", join(adminDir, 'config.worktree')]],
    files: () => [
      pointer,
      ...['gitdir', 'commondir', 'coppice'].map((name): Named => [
        `\`${name}\` in git's record of this worktree`,
        join(adminDir, name),
      ]),
    ],
    gitDir: adminDir,
    options,
  })
}

/** As lines for people; empty if nothing changed. */
export const gitChanges = (before: GitLook, after: GitLook): string[] => {
  // Unknown doesn't mean unharmed.
  if ('problem' in after) return [`they couldn't be checked completely (${after.problem})`]
  return 'problem' in before ? [] : differences(before, after)
}

/**
 * Without everyday changes between runs: Coppice, users and their editors set up branches and submodules, which runs no
 * program.
 */
export const gitChangesBetweenRuns = (before: GitLook, after: GitLook): string[] =>
  gitChanges(withoutEveryday(before), withoutEveryday(after))

const withoutEveryday = (given: GitLook): GitLook => {
  if ('problem' in given) return given
  const { configs, followed, ...rest } = given
  const without = (all: typeof configs): typeof configs =>
    Object.fromEntries(
      Object.entries(all).map(([name, entries]) => [name, entries.filter(({ key }) => !isEveryday(key))]),
    )
  return {
    ...rest,
    configs: without(configs),
    ...(followed !== undefined && { followed: { ...followed, configs: without(followed.configs) } }),
  }
}

/**
 * `extensions.worktreeConfig` and `core.bare`: git moves them when a worktree gets configuration of its own, as for a
 * sparse checkout or a crew member.
 *
 * A branch's merge options go to `git merge`, which can run any strategy. Its remotes may be paths, with hooks that a
 * push runs: see `changedEntries`.
 */
const isEveryday = (key: string): boolean =>
  /^coppice\.\w+$|^extensions\.worktreeconfig$|^core\.bare$|^submodule\..*\.(?:url|active)$|^branch\.(?!.*\.(?:mergeoptions|remote|pushremote)$)/i.test(
    key,
  )

type Places = {
  readonly configs: readonly Named[]
  readonly files: (budget: Budget) => readonly Named[]
  readonly gitDir?: string
  readonly hooksFrom?: string
  readonly options: LookOptions
}

const look = async ({ configs, files, gitDir, hooksFrom, options }: Places): Promise<GitLook> => {
  const budget = createBudget()
  const { user, redact } = options
  try {
    const submodules = gitDir === undefined ? { configs: [], files: [] } : await submodulesIn(gitDir, budget)
    const sources = [
      ...(await sourcesOf(configs, hooksFrom, budget)),
      ...(await sourcesOf(submodules.configs, undefined, budget)),
    ]
    const included = await includedBy(sources, user, budget)
    // A worktree is always checked together with its repository: once is enough.
    const ofUser = hooksFrom === undefined ? [] : await userConfigs(user, budget)
    const ofUserToo = await includedBy(ofUser, user, budget)
    const elsewhere = hooksElsewhere([...sources, ...included, ...ofUser, ...ofUserToo], user)
    const own = [...files(budget), ...submodules.files]
    const print = createPrinter(budget)
    const targets = [...own, ...elsewhere].map(([name, file]): Named => [targetOf(name), file])
    return {
      configs: {
        ...(await entriesByName(sources, redact, budget)),
        ...(gitDir === undefined ? {} : { [SUBMODULES]: [] }),
      },
      files: await prints(own, print.file, budget),
      notes: notesByName([...sources, ...included], redact),
      followed: {
        configs: await entriesByName(included, redact, budget),
        files: {
          ...(await prints(elsewhere, print.file, budget)),
          ...(await prints(targets, print.target, budget)),
        },
      },
    }
  } catch (error) {
    return { problem: toAppError(error).message }
  }
}

const targetOf = (name: string): string => `what ${name} links to`

const sourcesOf = async (
  configs: readonly Named[],
  hooksFrom: string | undefined,
  budget: Budget,
): Promise<ConfigSource[]> => {
  const sources: ConfigSource[] = []
  for (const [name, file] of configs) {
    sources.push({ name, file, config: await readOwnConfig(file, budget), hooksFrom })
  }
  return sources
}

/** Two places can share a display name: then it stands for both, so neither hides the other. */
const entriesByName = async (
  sources: readonly ConfigSource[],
  redact: Redact,
  budget: Budget,
): Promise<Record<string, readonly Entry[]>> => {
  const found = new Map<string, Entry[]>()
  for (const { name, config } of sources) {
    const same = found.get(name) ?? []
    for (const entry of await entriesOf(config, redact, budget)) same.push(entry)
    found.set(name, same)
  }
  return Object.fromEntries(found)
}

const notesByName = (sources: readonly ConfigSource[], redact: Redact): Record<string, readonly FileNote[]> => {
  const found = Map.groupBy(sources, ({ name }) => name)
  return Object.fromEntries(
    [...found].flatMap(([name, same]) => {
      const notes = same.flatMap(({ config }) => config.notes)
      return notes.length === 0 ? [] : [[name, notes.map((note) => ({ ...note, shown: redact(note.shown) }))]]
    }),
  )
}

const prints = async (
  named: readonly Named[],
  print: Printer['file'],
  budget: Budget,
): Promise<Record<string, string>> => {
  const found = new Map<string, string>()
  for (const [name, file] of named) {
    await budget.giveWay()
    const printed = print(file)
    const same = found.get(name)
    if (printed !== undefined) found.set(name, same === undefined ? printed : `${same}, ${printed}`)
  }
  return Object.fromEntries(found)
}

/** Tells a repository without submodules from a snapshot by a version that didn't check them. */
const SUBMODULES = "the submodules' configuration"

type Seen = Exclude<GitLook, { readonly problem: string }>

const differences = (before: Seen, after: Seen): string[] => {
  const lines = Object.entries(after.configs).flatMap(([name, entries]) => {
    const old = before.configs[name]
    if (old !== undefined) return changedEntries(name, entries, old, remotesIn(old))
    // Stored by a version that didn't check this file.
    if (before.configs[SUBMODULES] === undefined) return []
    const planted = entries.filter(({ key }) => !OF_NEW_SUBMODULE.test(key))
    return changedEntries(name, planted, [], ['origin'])
  })
  lines.push(...changedNotes(before.notes, after.notes))
  const files = changedFiles(before.files, after.files)
  if (before.followed === undefined || after.followed === undefined) return [...lines, ...files.values()]
  for (const [name, entries] of Object.entries(after.followed.configs)) {
    for (const line of changedEntries(name, entries, before.followed.configs[name] ?? [], [])) lines.push(line)
  }
  for (const [name, line] of changedFiles(before.followed.files, after.followed.files)) files.set(name, line)
  // For a new link, one line is enough.
  for (const name of files.keys()) files.delete(targetOf(name))
  return [...lines, ...files.values()]
}

const changedEntries = (
  name: string,
  entries: readonly Entry[],
  old: readonly Entry[],
  remotes: readonly string[],
): string[] => {
  // A branch may track this repository (`.`) or an existing remote. Anything else is an address.
  const known = new Set(['.', ...remotes].map(remoteHash))
  return [
    ...lacking(entries, old)
      .filter(({ remote }) => remote === undefined || !known.has(remote))
      .map((entry) => `${name}: set \`${entry.shown}\``),
    ...lacking(old, entries)
      .filter(({ key }) => !BRANCH_REMOTE.test(key))
      .map((entry) => `${name}: removed \`${entry.shown}\``),
  ]
}

const changedNotes = (before: Seen['notes'], after: Seen['notes']): string[] => {
  if (before === undefined || after === undefined) return []
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((name) => {
    const [old, now] = [before[name] ?? [], after[name] ?? []]
    return [
      ...lacking(now, old).map(({ shown }) => `${name} is now: ${shown}`),
      ...lacking(old, now).map(({ shown }) => `${name} is no longer: ${shown}`),
    ]
  })
}

/** Lines for people, by file name. */
const changedFiles = (before: Record<string, string>, after: Record<string, string>): Map<string, string> => {
  const lines = new Map<string, string>()
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [old, now] = [before[name], after[name]]
    if (old === now) continue
    lines.set(name, `${name} was ${old === undefined ? 'added' : now === undefined ? 'removed' : 'changed'}`)
  }
  return lines
}

/** Written by `git submodule update` for a new submodule. */
const OF_NEW_SUBMODULE =
  /^(?:core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|worktree|symlinks|ignorecase|precomposeunicode)|remote\.origin\.(?:url|fetch)|submodule\..*\.(?:url|active)|submodule\.active)$/is

/** Without a URL it isn't a remote's name: git takes it for a path. */
const remotesIn = (entries: readonly Entry[]): string[] =>
  entries.flatMap(({ key }) => /^remote\.(.+)\.url$/is.exec(key)?.[1] ?? [])

/** Entries that occur less often in the second list. */
const lacking = <T extends Pick<Entry, 'print'>>(entries: readonly T[], others: readonly T[]): T[] => {
  const left = new Map<string, number>()
  for (const { print } of others) left.set(print, (left.get(print) ?? 0) + 1)
  return entries.filter(({ print }) => {
    const count = left.get(print) ?? 0
    left.set(print, count - 1)
    return count <= 0
  })
}

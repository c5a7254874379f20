import { lstatSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { toAppError } from '../domain/errors.ts'
import { unlessMissingSync } from '../domain/missing.ts'
import { readWorktreeLink } from '../git/admin-dir.ts'
import { type ConfigLine, configLines, entriesOf, type Entry, hashOf } from './git-config-file.ts'
import { type ConfigSource, hooksElsewhere, includedBy, userConfigs, type UserFiles } from './git-follow.ts'
import { hooksIn, type Named, submodulesIn } from './git-places.ts'
import { createPrinter, type Printer } from './git-print.ts'

/** Plain values, to be kept between runs. */
export type GitLook =
  | {
      readonly configs: Record<string, readonly Entry[]>
      readonly files: Record<string, string>
      /** What those lead to outside of the repository. Missing in a look by a version that did not follow them. */
      readonly followed?: {
        readonly configs: Record<string, readonly Entry[]>
        readonly files: Record<string, string>
      }
    }
  | { readonly problem: string }

/**
 * Looks at git's own files. An agent can write the repository's configuration and hooks, which a person's next
 * `git status` would obey. Coppice's calls of git run none of it; the person is told. Only files are read, and few: no
 * program is started.
 */
export const lookAtRepository = (
  { repoPath, checkoutPath }: Pick<Codebase, 'repoPath' | 'checkoutPath'>,
  user: UserFiles,
): GitLook =>
  look({
    configs: [
      ["the repository's configuration", join(repoPath, 'config')],
      ["the main worktree's configuration", join(repoPath, 'config.worktree')],
    ],
    files: () => [
      ['`info/attributes` of the repository', join(repoPath, 'info', 'attributes')],
      ['`objects/info/alternates` of the repository', join(repoPath, 'objects', 'info', 'alternates')],
      ...hooksIn(repoPath),
    ],
    gitDir: repoPath,
    hooksFrom: checkoutPath ?? repoPath,
    user,
  })

/** The worktree's own configuration and the pointers between it and the repository. */
export const lookAtWorktree = async (
  { repoPath }: Pick<Codebase, 'repoPath'>,
  { path, adminName }: Pick<IsolatedEnvironment, 'path' | 'adminName'>,
  user: UserFiles,
): Promise<GitLook> => {
  // Git's record by the name we know: the `.git` file is the agent's to rewrite.
  const adminDir =
    adminName === undefined
      ? await readWorktreeLink(path).catch(() => undefined)
      : join(repoPath, 'worktrees', adminName)
  const pointer: Named = ['the `.git` file of this worktree', join(path, '.git')]
  if (adminDir === undefined) return look({ configs: [], files: () => [pointer], user })
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
    user,
  })
}

/** In lines for a person; empty: nothing changed. */
export const gitChanges = (before: GitLook, after: GitLook): readonly string[] => {
  // Not known is not the same as unharmed.
  if ('problem' in after) return [`they could not be looked at (${after.problem})`]
  return 'problem' in before ? [] : differences(before, after)
}

/**
 * The same without what happens every day while no agent runs: Coppice itself, a person and their editor set up branches
 * and submodules, none of which is a program to run.
 */
export const gitChangesBetweenRuns = (before: GitLook, after: GitLook): readonly string[] =>
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
 * A branch's merge options go to `git merge`, which can run a strategy of any name. Its remotes may be paths, with hooks
 * that a push runs: see `isKnownRemote`.
 */
const isEveryday = (key: string): boolean =>
  /^coppice\.\w+$|^submodule\..*\.(?:url|active)$|^branch\.(?!.*\.(?:mergeoptions|remote|pushremote)$)/i.test(key)

type Places = {
  readonly configs: readonly Named[]
  readonly files: () => readonly Named[]
  readonly gitDir?: string
  readonly hooksFrom?: string
  readonly user: UserFiles
}

const look = ({ configs, files, gitDir, hooksFrom, user }: Places): GitLook => {
  try {
    const submodules = gitDir === undefined ? { configs: [], files: [] } : submodulesIn(gitDir)
    const sources = [
      ...configs.map((one) => sourceOf(one, hooksFrom)),
      ...submodules.configs.map((one) => sourceOf(one, undefined)),
    ]
    const included = sources.flatMap((source) => includedBy(source, user))
    // A worktree is always looked at together with its repository: once is enough.
    const ofUser = hooksFrom === undefined ? [] : userConfigs(user)
    const ofUserToo = ofUser.flatMap((source) => includedBy(source, user))
    const elsewhere = hooksElsewhere([...sources, ...included, ...ofUser, ...ofUserToo], user)
    const own = [...files(), ...submodules.files]
    const print = createPrinter()
    const targets = [...own, ...elsewhere].map(([name, file]): Named => [targetOf(name), file])
    return {
      configs: { ...entriesByName(sources), ...(gitDir === undefined ? {} : { [SUBMODULES]: [] }) },
      files: prints(own, print.file),
      followed: {
        configs: entriesByName(included),
        files: { ...prints(elsewhere, print.file), ...prints(targets, print.target) },
      },
    }
  } catch (error) {
    return { problem: toAppError(error).message }
  }
}

const targetOf = (name: string): string => `what ${name} links to`

const sourceOf = ([name, file]: Named, hooksFrom: string | undefined): ConfigSource => ({
  name,
  file,
  lines: linesIn(file),
  hooksFrom,
})

/** A link is reported as such, and its content all the same: git follows it. */
const linesIn = (file: string): readonly ConfigLine[] => {
  const stat = unlessMissingSync(() => lstatSync(file))
  if (stat === undefined) return []
  if (stat.isFile()) return configLines(file, { followLink: false })
  if (!stat.isSymbolicLink()) return [{ section: '', text: 'it is no file' }]
  return [{ section: '', text: `it is link ${readlinkSync(file)}` }, ...configLines(file, { followLink: true })]
}

const entriesByName = (sources: readonly ConfigSource[]): Record<string, readonly Entry[]> =>
  Object.fromEntries(sources.map(({ name, lines }) => [name, entriesOf(lines)]))

const prints = (named: readonly Named[], print: Printer['file']): Record<string, string> =>
  Object.fromEntries(
    named.flatMap(([name, file]) => {
      const found = print(file)
      return found === undefined ? [] : [[name, found]]
    }),
  )

/** Tells a look at a repository without submodules from one by a version that did not look at them. */
const SUBMODULES = "the submodules' configuration"

type Seen = Exclude<GitLook, { readonly problem: string }>

const differences = (before: Seen, after: Seen): string[] => {
  const lines = Object.entries(after.configs).flatMap(([name, entries]) => {
    const old = before.configs[name]
    if (old !== undefined) return changedEntries(name, entries, old, remotesIn(old))
    // Without the submodules it was kept by a version that did not look at this file.
    if (before.configs[SUBMODULES] === undefined) return []
    const planted = entries.filter(({ key }) => !OF_NEW_SUBMODULE.test(key))
    return changedEntries(name, planted, [], ['origin'])
  })
  const files = changedFiles(before.files, after.files)
  if (before.followed === undefined || after.followed === undefined) return [...lines, ...files.values()]
  for (const [name, entries] of Object.entries(after.followed.configs)) {
    lines.push(...changedEntries(name, entries, before.followed.configs[name] ?? [], []))
  }
  for (const [name, line] of changedFiles(before.followed.files, after.followed.files)) files.set(name, line)
  // Of a link that is new itself, that is all there is to say.
  for (const name of files.keys()) files.delete(targetOf(name))
  return [...lines, ...files.values()]
}

const changedEntries = (
  name: string,
  entries: readonly Entry[],
  old: readonly Entry[],
  remotes: readonly string[],
): string[] => [
  ...lacking(entries, old)
    .filter((entry) => !isKnownRemote(entry, remotes))
    .map((entry) => `${name}: set \`${entry.shown}\``),
  ...lacking(old, entries)
    .filter(({ key }) => !BRANCH_REMOTE.test(key))
    .map((entry) => `${name}: removed \`${entry.shown}\``),
]

/** Lines for a person, by the name of the file. */
const changedFiles = (before: Record<string, string>, after: Record<string, string>): Map<string, string> => {
  const lines = new Map<string, string>()
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [old, now] = [before[name], after[name]]
    if (old === now) continue
    lines.set(name, `${name} was ${old === undefined ? 'added' : now === undefined ? 'removed' : 'changed'}`)
  }
  return lines
}

const BRANCH_REMOTE = /^branch\..*\.(?:remote|pushremote)$/is

/** What `git submodule update` writes for a submodule that it clones. */
const OF_NEW_SUBMODULE =
  /^(?:core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|worktree|symlinks|ignorecase|precomposeunicode)|remote\.origin\.(?:url|fetch)|submodule\..*\.(?:url|active)|submodule\.active)$/is

/** A branch that belongs to this repository (`.`) or to a remote that was there before. Anything else is an address. */
const isKnownRemote = ({ key, print }: Entry, remotes: readonly string[]): boolean =>
  BRANCH_REMOTE.test(key) && ['.', ...remotes].some((name) => print === hashOf(`${key} = ${name}`))

/** Without a URL a name is none of a remote: git takes it for a path. */
const remotesIn = (entries: readonly Entry[]): string[] =>
  entries.flatMap(({ key }) => /^remote\.(.+)\.url$/is.exec(key)?.[1] ?? [])

/** Those of the first list that the second has fewer times. */
const lacking = (entries: readonly Entry[], others: readonly Entry[]): Entry[] => {
  const left = others.map(({ print }) => print)
  return entries.filter(({ print }) => {
    const at = left.indexOf(print)
    if (at >= 0) left.splice(at, 1)
    return at < 0
  })
}

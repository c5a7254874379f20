import { createHash } from 'node:crypto'
import { lstatSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { toAppError } from '../domain/errors.ts'
import { unlessMissingSync } from '../domain/missing.ts'
import { readWorktreeLink } from '../git/admin-dir.ts'
import { readUntrustedSync, readUntrustedTextSync } from '../process/read-untrusted.ts'
import { hooksIn, type Named, submodulesIn } from './git-places.ts'

/** Plain values, to be kept between runs: of a configuration entry that may hold a password only a hash. */
export type GitLook =
  | { readonly configs: Record<string, readonly Entry[]>; readonly files: Record<string, string> }
  | { readonly problem: string }

type Entry = { readonly key: string; readonly shown: string; readonly print: string }

/**
 * Looks at git's own files. An agent can write the repository's configuration and hooks, which a person's next
 * `git status` would obey. Coppice's calls of git run none of it; the person is told. Only files are read, and few: no
 * program is started.
 */
export const lookAtRepository = ({ repoPath }: Pick<Codebase, 'repoPath'>): GitLook =>
  look(
    [
      ["the repository's configuration", join(repoPath, 'config')],
      ["the main worktree's configuration", join(repoPath, 'config.worktree')],
    ],
    () => [
      ['`info/attributes` of the repository', join(repoPath, 'info', 'attributes')],
      ['`objects/info/alternates` of the repository', join(repoPath, 'objects', 'info', 'alternates')],
      ...hooksIn(repoPath),
    ],
    repoPath,
  )

/** The worktree's own configuration and the pointers between it and the repository. */
export const lookAtWorktree = async (
  { repoPath }: Pick<Codebase, 'repoPath'>,
  { path, adminName }: Pick<IsolatedEnvironment, 'path' | 'adminName'>,
): Promise<GitLook> => {
  // Git's record by the name we know: the `.git` file is the agent's to rewrite.
  const adminDir =
    adminName === undefined
      ? await readWorktreeLink(path).catch(() => undefined)
      : join(repoPath, 'worktrees', adminName)
  if (adminDir === undefined) return look([], () => [['the `.git` file of this worktree', join(path, '.git')]])
  return look(
    [["this worktree's configuration", join(adminDir, 'config.worktree')]],
    () => [
      ['the `.git` file of this worktree', join(path, '.git')],
      ...['gitdir', 'commondir', 'coppice'].map((name): Named => [
        `\`${name}\` in git's record of this worktree`,
        join(adminDir, name),
      ]),
    ],
    adminDir,
  )
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

const withoutEveryday = (given: GitLook): GitLook =>
  'problem' in given
    ? given
    : {
        ...given,
        configs: Object.fromEntries(
          Object.entries(given.configs).map(([name, entries]) => [name, entries.filter(({ key }) => !isEveryday(key))]),
        ),
      }

/**
 * A branch's merge options go to `git merge`, which can run a strategy of any name. Its remotes may be paths, with hooks
 * that a push runs: see `isKnownRemote`.
 */
const isEveryday = (key: string): boolean =>
  /^coppice\.\w+$|^submodule\..*\.(?:url|active)$|^branch\.(?!.*\.(?:mergeoptions|remote|pushremote)$)/i.test(key)

const look = (configs: readonly Named[], files: () => readonly Named[], gitDir?: string): GitLook => {
  try {
    const submodules = gitDir === undefined ? { configs: [], files: [] } : submodulesIn(gitDir)
    return {
      configs: {
        ...Object.fromEntries([...configs, ...submodules.configs].map(([name, file]) => [name, entriesIn(file)])),
        ...(gitDir === undefined ? {} : { [SUBMODULES]: [] }),
      },
      files: Object.fromEntries(
        [...files(), ...submodules.files].flatMap(([name, file]) => printed(name, printOf(file))),
      ),
    }
  } catch (error) {
    return { problem: toAppError(error).message }
  }
}

const printed = (name: string, print: string | undefined): [string, string][] =>
  print === undefined ? [] : [[name, print]]

/** Tells a look at a repository without submodules from one by a version that did not look at them. */
const SUBMODULES = "the submodules' configuration"

/** Undefined: not there. A link is what it points to by name, since that is what was written. */
const printOf = (file: string): string | undefined => {
  const stat = unlessMissingSync(() => lstatSync(file))
  if (stat === undefined) return undefined
  if (stat.isSymbolicLink()) return `link ${readlinkSync(file)}`
  if (!stat.isFile()) return 'no file'
  // A hook is a script; what is larger than this is told apart by what it would take some care to fake.
  if (stat.size > MOST_HASHED) return `${stat.size} ${stat.mtimeMs} ${stat.ctimeMs}`
  return `${stat.mode & 0o111} ${createHash('sha256')
    .update(readUntrustedSync(file, { maxBytes: MOST_HASHED }) ?? '')
    .digest('hex')}`
}

const MOST_HASHED = 1_000_000

/**
 * Line by line, with the section before each: that is enough to say what is new. `git push -u` and a pull request's
 * checkout record which branch belongs to which, and that is everyday as far as it runs nothing.
 */
const entriesIn = (file: string): Entry[] => {
  const stat = unlessMissingSync(() => lstatSync(file))
  if (stat === undefined) return []
  if (!stat.isFile() || stat.size > MOST_HASHED) return [entryOf('', `it is ${printOf(file) ?? 'gone'}`)]
  const entries: Entry[] = []
  let section = ''
  for (const line of linesOf(readUntrustedTextSync(file, { maxBytes: MOST_HASHED }) ?? '')) {
    let entry = line.trim()
    // Git reads on after a header, so that one line can hold several: the last one counts.
    for (let header = HEADER.exec(entry); header !== null; header = HEADER.exec(entry)) {
      section = sectionName(header[1] ?? '')
      entry = entry.slice(header[0].length).trim()
    }
    if (entry === '' || entry.startsWith('#') || entry.startsWith(';')) continue
    if (section.startsWith('branch.')) {
      if (/^(?:merge|rebase|description)\s*=/i.test(entry)) continue
      entry = entry.replace(/\s*=\s*/, ' = ')
    }
    entries.push(entryOf(section, entry))
  }
  return entries
}

/** A `]` inside of quotes is part of the name. */
const HEADER = /^\[((?:[^\]"]|"(?:[^"\\]|\\.)*")*)\]/

/** A value goes on in the next line after a backslash, so that what looks like a header there is none. */
const linesOf = (text: string): readonly string[] => {
  const lines: string[] = []
  let open = false
  for (const line of text.replace(/^\uFEFF/, '').split(/\r?\n/)) {
    if (open) lines.push(`${lines.pop() ?? ''}${line}`)
    else lines.push(line)
    open = /(?:^|[^\\])(?:\\\\)*\\$/.test(line) && !/^\s*[#;]/.test(lines.at(-1) ?? '')
  }
  return lines
}

const sectionName = (text: string): string => {
  const [, name = text, sub] = /^\s*([^\s"]+)\s*(?:"(.*)")?\s*$/.exec(text) ?? []
  return sub === undefined ? name.toLowerCase() : `${name.toLowerCase()}.${sub}`
}

const entryOf = (section: string, text: string): Entry => {
  const entry = section === '' ? text : `${section}.${text}`
  const [key = entry] = entry.split('=')
  return { key: key.trim(), shown: shown(entry), print: hashOf(entry) }
}

const hashOf = (entry: string): string => createHash('sha256').update(entry).digest('hex')

type Seen = Exclude<GitLook, { readonly problem: string }>

const differences = (before: Seen, after: Seen): string[] => {
  const lines: string[] = []
  for (const [name, entries] of Object.entries(after.configs)) {
    // Kept by a version that did not look at this file.
    if (before.configs[name] === undefined && before.configs[SUBMODULES] === undefined) continue
    const isNew = before.configs[name] === undefined
    const old = before.configs[name] ?? []
    const remotes = isNew ? ['origin'] : remotesIn(old)
    for (const entry of lacking(entries, old)) {
      if (isKnownRemote(entry, remotes) || (isNew && OF_NEW_SUBMODULE.test(entry.key))) continue
      lines.push(`${name}: set \`${entry.shown}\``)
    }
    for (const entry of lacking(old, entries)) {
      if (!BRANCH_REMOTE.test(entry.key)) lines.push(`${name}: removed \`${entry.shown}\``)
    }
  }
  for (const name of new Set([...Object.keys(before.files), ...Object.keys(after.files)])) {
    const [old, now] = [before.files[name], after.files[name]]
    if (old !== now)
      lines.push(`${name} was ${old === undefined ? 'added' : now === undefined ? 'removed' : 'changed'}`)
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

/** A header or a URL may hold a password: then the key is all that is told. */
const shown = (entry: string): string => {
  const [key = entry] = entry.split('=')
  const plain = /extraheader|password|token|secret|cookie|\.url|insteadof|proxy|:\/\//i.test(entry)
    ? `${key.trim()} = …`
    : entry
  const line = plain.replaceAll('`', "'").replaceAll(/[\p{Cc}]/gu, ' ')
  return line.length > 160 ? `${line.slice(0, 160)}…` : line
}

import { createHash } from 'node:crypto'
import { lstatSync, readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { Codebase } from '../domain/environment.ts'
import { toAppError } from '../domain/errors.ts'
import { unlessMissingSync } from '../domain/missing.ts'
import { readWorktreeLink } from '../git/admin-dir.ts'
import { readUntrustedSync, readUntrustedTextSync } from '../process/read-untrusted.ts'

/** Answers what changed in git's own files since it was armed, in lines for a person; empty: nothing. */
export type GitWire = () => readonly string[]

/**
 * Arms it. An agent can write the repository's configuration and hooks, which a person's next `git status` would obey,
 * and its worktree's own pointers. Coppice's calls of git run none of it; the person is told. Only files are read, and
 * few: no program is started, before or after.
 */
export const armGitWire = async (codebase: Codebase, directory: string | undefined): Promise<GitWire> => {
  const adminDir = directory === undefined ? undefined : await readWorktreeLink(directory).catch(() => undefined)
  const look = (): Look => ({
    configs: new Map(configFiles(codebase.repoPath, adminDir).map(([name, file]) => [name, entriesIn(file)])),
    files: new Map([
      ...watchedFiles(codebase.repoPath, adminDir, directory).map(([name, file]) => [name, printOf(file)] as const),
      ...hooksIn(codebase.repoPath),
    ]),
  })
  const before = look()
  return () => {
    try {
      return differences(before, look())
    } catch (error) {
      // Not known is not the same as unharmed.
      return [`they could not be looked at (${toAppError(error).message})`]
    }
  }
}

type Look = {
  readonly configs: ReadonlyMap<string, readonly string[]>
  readonly files: ReadonlyMap<string, string | undefined>
}

const configFiles = (commonDir: string, adminDir: string | undefined): [string, string][] => [
  ["the repository's configuration", join(commonDir, 'config')],
  ["the main worktree's configuration", join(commonDir, 'config.worktree')],
  ...(adminDir === undefined
    ? []
    : [["this worktree's configuration", join(adminDir, 'config.worktree')] as [string, string]]),
]

const watchedFiles = (
  commonDir: string,
  adminDir: string | undefined,
  directory: string | undefined,
): [string, string][] => [
  ['`info/attributes` of the repository', join(commonDir, 'info', 'attributes')],
  ['`objects/info/alternates` of the repository', join(commonDir, 'objects', 'info', 'alternates')],
  ...(directory === undefined
    ? []
    : [['the `.git` file of this worktree', join(directory, '.git')] as [string, string]]),
  ...(adminDir === undefined
    ? []
    : ['gitdir', 'commondir', 'coppice'].map((name): [string, string] => [
        `\`${name}\` in git's record of this worktree`,
        join(adminDir, name),
      ])),
]

const hooksIn = (commonDir: string): [string, string | undefined][] => {
  const directory = join(commonDir, 'hooks')
  const names = (unlessMissingSync(() => readdirSync(directory)) ?? []).sort()
  return names
    .filter((name) => !name.endsWith('.sample'))
    .map((name) => [`the hook \`${name}\``, printOf(join(directory, name))])
}

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
 * checkout record which branch belongs to which, and that is everyday.
 */
const entriesIn = (file: string): string[] => {
  const stat = unlessMissingSync(() => lstatSync(file))
  if (stat === undefined) return []
  if (!stat.isFile() || stat.size > MOST_HASHED) return [`it is ${printOf(file) ?? 'gone'}`]
  const entries: string[] = []
  let section = ''
  for (const line of (readUntrustedTextSync(file, { maxBytes: MOST_HASHED }) ?? '').split('\n')) {
    const [, name, rest] = /^\s*\[([^\]]*)\]\s*(.*)$/.exec(line) ?? []
    if (name !== undefined) section = sectionName(name)
    const entry = (rest ?? line).trim()
    if (entry === '' || entry.startsWith('#') || entry.startsWith(';')) continue
    if (section.startsWith('branch.') && /^(?:remote|merge|rebase|pushremote)\s*=/i.test(entry)) continue
    entries.push(`${section}.${entry}`)
  }
  return entries
}

const sectionName = (text: string): string => {
  const [, name = text, sub] = /^\s*([^\s"]+)\s*(?:"(.*)")?\s*$/.exec(text) ?? []
  return sub === undefined ? name.toLowerCase() : `${name.toLowerCase()}.${sub}`
}

const differences = (before: Look, after: Look): string[] => {
  const lines: string[] = []
  for (const [name, entries] of after.configs) {
    const old = before.configs.get(name) ?? []
    for (const entry of lacking(entries, old)) lines.push(`${name}: set \`${shown(entry)}\``)
    for (const entry of lacking(old, entries)) lines.push(`${name}: removed \`${shown(entry)}\``)
  }
  for (const name of new Set([...before.files.keys(), ...after.files.keys()])) {
    const [old, now] = [before.files.get(name), after.files.get(name)]
    if (old !== now)
      lines.push(`${name} was ${old === undefined ? 'added' : now === undefined ? 'removed' : 'changed'}`)
  }
  return lines
}

/** Those of the first list that the second has fewer times. */
const lacking = (entries: readonly string[], others: readonly string[]): string[] => {
  const left = [...others]
  return entries.filter((entry) => {
    const at = left.indexOf(entry)
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

import { dirname, join } from 'node:path'
import { AppError } from '../domain/errors.ts'
import { type BranchName, type Sha, toRepoPath } from '../domain/names.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { unlessMissing } from '../domain/missing.ts'
import { shellWord } from '../domain/text/shell-word.ts'
import { copyUntrusted, readUntrustedTextSync } from '../process/files/read-untrusted.ts'
import { replaceFileSync } from '../process/files/replace-file.ts'
import { checkOutHead } from './checkout.ts'
import { reserveSpace } from './reserve-space.ts'
import { type ConfigEntry, lastValue, splitKey } from './config-entries.ts'
import type { CallOptions, Git, Repo, Tree } from './door.ts'
import { meaningfulLine } from './failure.ts'
import { maxConfigBytes, maxOtherBytes } from './file-limits.ts'
import type { Setting } from './neutral.ts'
import { copyObjects } from './own-objects.ts'
import { updateRefs } from './refs.ts'
import { remedy, shell } from '../domain/remedy.ts'
import { lstatIfThere } from '../process/files/lstat-if-there.ts'

/** The checkout of a clone whose git directory is `.git`. */
export const cloneAt = (path: string): Tree => {
  const gitDir = join(path, '.git')
  return { commonDir: toRepoPath(gitDir), gitDir, path }
}

export type BorrowingClone = {
  /** Absolute; an existing, empty directory. */
  readonly path: string
  /** The repository that lends its objects: the clone reads from it and never writes to it. */
  readonly lender: Repo
  readonly branch: BranchName
  readonly at: Sha
  /** Other refs that it starts with. */
  readonly refs: readonly { readonly name: string; readonly sha: Sha }[]
  readonly config: readonly (readonly [key: string, value: string])[]
  readonly settings?: readonly Setting[] | undefined
  readonly onSpawn: (identity: ProcessIdentity) => void
}

/**
 * Creates a repository with its own refs, configuration and hooks, and checks out `branch`. Its objects are borrowed:
 * with hard links, writes in the clone could change the lender's packs.
 */
export const cloneBorrowing = async (
  git: Git,
  { path, lender, branch, at, refs, config, settings = [], onSpawn }: BorrowingClone,
  { signal }: CallOptions = {},
): Promise<Tree> => {
  using _ = await reserveSpace(git, lender)
  const tree = cloneAt(path)
  const lent = await git.config(lender)
  assertCanLend(lender, lent)
  const format = lastValue(lent, 'extensions.objectformat') ?? 'sha1'
  const options = signal === undefined ? {} : { signal }
  await git.run({
    operation: 'init',
    at: { cwd: dirname(path) },
    args: [
      'init',
      '--quiet',
      '--template=',
      `--object-format=${format}`,
      `--initial-branch=${branch}`,
      '--end-of-options',
      path,
    ],
    locks: true,
    onSpawn,
    ...options,
  })
  setLender(tree, lender)
  // Where the history of a shallow repository ends.
  await unlessMissing(copyUntrusted(join(lender.commonDir, 'shallow'), join(tree.gitDir, 'shallow')))
  addConfig(tree, [...inheritedConfig(lent), ...config])
  const commands = [{ name: `refs/heads/${branch}`, sha: at }, ...refs].map(({ name, sha }) => ({
    create: name,
    to: sha,
  }))
  const made = await updateRefs(git, tree, commands, { reason: 'coppice: cloned', ...options })
  if (!made.ok) throw new AppError('git-failed', `couldn't write the clone's refs: ${made.stderr.trim()}`)
  await checkOutHead(git, tree, { settings, onSpawn, ...options })
  return tree
}

/** Points the clone at its lender, also after the lender moved. */
export const setLender = ({ gitDir }: Tree, { commonDir }: Repo): void =>
  replaceFileSync(alternates(gitDir), `${join(commonDir, 'objects')}\n`)

/** Whether the clone borrows from this repository and no other. */
export const borrowsFrom = ({ gitDir }: Tree, { commonDir }: Repo): boolean =>
  readUntrustedTextSync(alternates(gitDir), { maxBytes: maxConfigBytes }) === `${join(commonDir, 'objects')}\n`

/** The git directory of the only repository that it borrows from. */
export const lenderOf = ({ gitDir }: Tree): string | undefined => {
  const text = readUntrustedTextSync(alternates(gitDir), { maxBytes: maxConfigBytes })
  return text === undefined ? undefined : /^(\/[^\n]+)\/objects\n$/.exec(text)?.[1]
}

const alternates = (gitDir: string): string => join(gitDir, 'objects/info/alternates')

const assertCanLend = ({ commonDir }: Repo, config: readonly ConfigEntry[]): void => {
  const refuse = (why: string): AppError =>
    new AppError('unsupported', `couldn't clone ${commonDir}: ${why}`, {
      remedy: 'use linked worktrees for this repository: set isolation.provider to worktree',
    })
  if (lastValue(config, 'extensions.partialclone') !== undefined) {
    throw refuse("it is a partial clone, and its missing objects can't be fetched from the clone")
  }
  if (/[\n\r]/.test(commonDir)) throw refuse("its path contains a line break, which git can't record in a clone")
}

/** What a clone of a repository with this configuration begins with. */
export const inheritedConfig = (lent: readonly ConfigEntry[]): (readonly [string, string])[] => lent.flatMap(inherited)

/**
 * A person's identity and line-ending settings. Nothing that runs a program or holds a secret, and nothing that git
 * detects about the file system itself.
 */
const inherited = ({ scope, key, value }: ConfigEntry): (readonly [string, string])[] => {
  const { section, subsection, variable } = splitKey(key)
  if (scope !== 'local' || subsection !== undefined) return []
  const isPersonal = ['user', 'author', 'committer'].includes(section)
  const isAboutFiles = section === 'core' && aboutFiles.has(variable)
  return isPersonal || isAboutFiles ? [[key, value ?? 'true']] : []
}

const aboutFiles: ReadonlySet<string> = new Set(['autocrlf', 'eol', 'safecrlf', 'protecthfs', 'protectntfs', 'abbrev'])

/** In one write: a process per key would take longer than the rest. */
const addConfig = ({ gitDir }: Tree, entries: readonly (readonly [string, string])[]): void => {
  const file = join(gitDir, 'config')
  const text = readUntrustedTextSync(file, { maxBytes: maxConfigBytes }) ?? ''
  const lines = entries.map(([key, value]) => {
    const { section, subsection, variable } = splitKey(key)
    const name = subsection === undefined ? section : `${section} "${escaped(subsection)}"`
    return `[${name}]\n\t${variable} = "${escaped(value).replaceAll('\n', '\\n').replaceAll('\t', '\\t')}"\n`
  })
  replaceFileSync(file, `${text}${lines.join('')}`)
}

const escaped = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')

/**
 * Copies what these objects reach into the lender, except what it already has. Throws if the lender's copy is
 * incomplete (the clone may be shallow, or borrow elsewhere): a ref to a partial history breaks every gc of the lender.
 */
export const copyObjectsToLender = async (
  git: Git,
  from: Tree,
  to: Repo,
  objects: readonly Sha[],
  { tempPrefix, signal }: CallOptions & { tempPrefix: string },
): Promise<void> => {
  const revisions = objects.map((sha) => `${sha}\n`).join('')
  // From the checkout: otherwise git would enter the clone's `core.worktree`.
  await copyObjects(git, { from, to, revisions, tempPrefix, withoutBorrowed: true, signal })
  await assertConnected(git, from, to, { stdin: revisions, signal })
}

/** Like `git fetch`. If one of the lender's own refs is broken, walks everything instead of failing. */
const assertConnected = async (
  git: Git,
  from: Tree,
  to: Repo,
  { stdin, signal }: CallOptions & { stdin: string },
): Promise<void> => {
  const walk = (...except: string[]) => {
    const args = ['rev-list', '--objects', '--quiet', '--stdin', ...except]
    const at = { commonDir: to.commonDir }
    return git.run({ operation: 'rev-list', at, args, stdin, ok: [0, 1, 128], ...(signal && { signal }) })
  }
  if ((await walk('--not', '--all')).exitCode === 0) return
  const { exitCode, stderr } = await walk()
  if (exitCode === 0) return
  const place = shellWord(from.path)
  throw new AppError('git-failed', `the history of ${from.path} is incomplete: ${meaningfulLine(stderr)}`, {
    remedy: isShallow(from)
      ? remedy`fetch the rest of it: ${shell(`git -C ${place} fetch --unshallow`)}`
      : remedy`find out what is missing: ${shell(`git -C ${place} fsck`)}`,
  })
}

const isShallow = ({ commonDir }: Repo): boolean => lstatIfThere(join(commonDir, 'shallow')) !== undefined

/** The clone's history is cut where the lender's isn't, as after `git fetch --depth=1`. */
export const hasShorterHistory = (clone: Repo, lender: Repo): boolean => {
  const [own, lent] = [clone, lender].map(({ commonDir }) =>
    readUntrustedTextSync(join(commonDir, 'shallow'), { maxBytes: maxOtherBytes }),
  )
  return own !== undefined && own !== lent
}

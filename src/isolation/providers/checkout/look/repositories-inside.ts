import { lstat, realpath, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { unlessMissing } from '../../../../domain/missing.ts'
import { bytesBelow, rawBytes, shownPath } from '../../../../domain/text/raw-path.ts'
import { linkedGitDirectory, maxLineBytes } from '../../../../domain/git-link.ts'
import { trimEndOf } from '../../../../domain/text/trim-end.ts'
import { readAdminDir, worktreePaths } from '../../../../git/admin-dir.ts'
import type { Tree } from '../../../../git/door.ts'
import { readUntrustedText } from '../../../../process/files/read-untrusted.ts'
import type { IsolationContext } from '../../../context.ts'
import { mapInPairs } from '../../../map-concurrent.ts'
import { isInside } from '../../../paths.ts'
import { type Checkout, workIn } from './repository-work.ts'
import type { Walk } from '../../../walk.ts'
import type { RepositoryWork } from '../../../../domain/removal/reason.ts'

/** A repository inside a tree, including any repositories inside it. Paths are raw. */
export type InnerRepository = {
  /** What to keep so that nothing is lost: its directory, or only its `.git` if the tree tracks the rest. */
  readonly path: string
  /** What only it holds; undefined if a fresh clone would bring everything back. */
  readonly work: RepositoryWork | undefined
}

/** A worktree inside a tree that this or another repository has a record of. */
export type InnerWorktree = { readonly path: string; readonly repository: string }

export type Inside = { readonly repositories: readonly InnerRepository[]; readonly worktrees: readonly InnerWorktree[] }

/** Git's view of the tree around them. Raw paths; a whole directory ends with `/`. */
export type Surroundings = {
  readonly gitlinks: readonly string[]
  readonly untracked: readonly string[]
  readonly ignored: readonly string[]
  /** The tree's path in git's records, if it was moved away for a second look. */
  readonly recordedPath: string
}

/** Beyond this many, they count as work uninspected. */
const mostJudged = 50

/**
 * Every repository and linked worktree inside a tree, at any depth, in tracked, untracked and ignored directories.
 * Excludes submodules whose git directory is in the tree's own record.
 */
export const repositoriesInside = async (
  context: Pick<IsolationContext, 'git'>,
  tree: Tree,
  walked: Pick<Walk, 'gits' | 'gitDirectories'>,
  around: Surroundings,
): Promise<Inside> => {
  const gits = await Promise.all(walked.gits.map((git) => readGit(tree, git, around)))
  const bare = walked.gitDirectories
    .filter((path) => !path.endsWith('/.git'))
    .filter((path) => isInGitDirectory(path) || !isTracked(path, around))
    .map((path): Found => ({
      kind: 'repository',
      path,
      keep: keepOf(path, path, around),
      checkout: { gitDir: absolute(tree, path), path: undefined },
    }))
  const all = [...gits, ...bare].flatMap((found) => found ?? [])
  const repositories = all.filter((found) => found.kind === 'repository')
  const work = await judge(context, repositories)
  return {
    repositories: joinOuter(repositories, work),
    worktrees: await withRecorded(tree, all, around.recordedPath),
  }
}

/** Only linked worktrees, when nothing is known about the tree around them. */
export const worktreesInside = async (tree: Tree, walked: Pick<Walk, 'gits'>): Promise<InnerWorktree[]> => {
  const around = { gitlinks: [], untracked: [], ignored: [], recordedPath: tree.path }
  const found = await Promise.all(walked.gits.map((git) => readGit(tree, git, around)))
  return withRecorded(
    tree,
    found.flatMap((one) => one ?? []),
    tree.path,
  )
}

type Repository = {
  readonly kind: 'repository'
  readonly path: string
  readonly keep: string
  /** Undefined if it can't be asked; see `why`. */
  readonly checkout: Checkout | undefined
  readonly why?: RepositoryWork
}
type Worktree = { readonly kind: 'worktree'; readonly path: string; readonly repository: string }
type Found = Repository | Worktree

/** What a `.git` is; undefined for a submodule in the tree's own record. */
const readGit = async (tree: Tree, git: Walk['gits'][number], around: Surroundings): Promise<Found | undefined> => {
  const path = parentOf(git.path)
  const repository = { kind: 'repository', path, keep: keepOf(path, git.path, around) } as const
  const unknown = (why: RepositoryWork): Repository => ({ ...repository, checkout: undefined, why })
  if (!rawBytes(path).equals(Buffer.from(shownPath(path)))) return unknown({ kind: 'name-not-utf8' })
  try {
    const gitDir = git.isDirectory ? absolute(tree, git.path) : await linkTarget(tree, git.path)
    if (gitDir === undefined) return unknown({ kind: 'leads-nowhere', path: shownPath(git.path) })
    if (around.gitlinks.includes(path) && isInside(await realpath(tree.gitDir), gitDir)) return undefined
    const common = git.isDirectory
      ? undefined
      : await readUntrustedText(join(gitDir, 'commondir'), { maxBytes: maxLineBytes })
    if (common === undefined) return { ...repository, checkout: { gitDir, path: absolute(tree, path) } }
    return (await isRecordOf(gitDir, tree, path, around)) || (await isMovedAway(gitDir, tree, around))
      ? { kind: 'worktree', path, repository: resolve(gitDir, common.trim()) }
      : unknown({ kind: 'copied-worktree' })
  } catch (error) {
    return unknown({ kind: 'unknown', message: error instanceof Error ? error.message : String(error) })
  }
}

/** A `.git` file names its git directory, a link is one. Undefined if that doesn't exist. */
const linkTarget = async (tree: Tree, path: string): Promise<string | undefined> => {
  const at = absolute(tree, path)
  if ((await lstat(at)).isSymbolicLink()) {
    const real = await unlessMissing(realpath(at))
    return real !== undefined && (await stat(real)).isDirectory() ? real : undefined
  }
  const target = linkedGitDirectory(await readUntrustedText(at, { maxBytes: maxLineBytes }))
  return target === undefined ? undefined : unlessMissing(realpath(resolve(absolute(tree, parentOf(path)), target)))
}

/**
 * Whether git's record names this directory. A copied worktree has the same `.git`, but the record names the original.
 */
const isRecordOf = async (record: string, tree: Tree, path: string, around: Surroundings): Promise<boolean> => {
  const named = (await readAdminDir(record))?.worktreePath
  if (named === undefined) return false
  if (named === join(around.recordedPath, shownPath(path))) return true
  return (await unlessMissing(realpath(named))) === (await realpath(absolute(tree, path)))
}

/** Nothing is at the recorded path: the directory was moved by hand, so this is the worktree, not a copy. */
const isMovedAway = async (record: string, tree: Tree, { recordedPath }: Surroundings): Promise<boolean> => {
  const named = (await readAdminDir(record))?.worktreePath
  if (named === undefined) return true
  const now = isInside(recordedPath, named) ? `${tree.path}${named.slice(recordedPath.length)}` : named
  return (await unlessMissing(lstat(now))) === undefined
}

/** A worktree of this repository that lost its `.git` is still in git's records. */
const withRecorded = async (tree: Tree, found: readonly Found[], recordedPath: string): Promise<InnerWorktree[]> => {
  const worktrees = found.filter((one) => one.kind === 'worktree').map(({ path, repository }) => ({ path, repository }))
  for (const named of await worktreePaths(tree.commonDir)) {
    const root = [recordedPath, tree.path].find((one) => named !== one && isInside(one, named))
    const path = root === undefined ? undefined : Buffer.from(named.slice(root.length + 1)).toString('latin1')
    if (path === undefined || worktrees.some((one) => one.path === path)) continue
    if ((await unlessMissing(lstat(bytesBelow(tree.path, path)))) === undefined) continue
    worktrees.push({ path, repository: tree.commonDir })
  }
  return worktrees
}

const judge = async (
  context: Pick<IsolationContext, 'git'>,
  repositories: readonly Repository[],
): Promise<ReadonlyMap<Repository, RepositoryWork>> => {
  const work = new Map<Repository, RepositoryWork>()
  for (const one of repositories) if (one.why !== undefined) work.set(one, one.why)
  const asked = repositories.filter(({ checkout }) => checkout !== undefined)
  for (const one of asked.slice(mostJudged)) work.set(one, { kind: 'too-many' })
  await mapInPairs(asked.slice(0, mostJudged), async (one) => {
    const found = one.checkout && (await workIn(context, one.checkout))
    if (found !== undefined) work.set(one, found)
  })
  return work
}

/** A nested one is kept or lost with the outer one: work in either keeps both. */
const joinOuter = (
  repositories: readonly Repository[],
  work: ReadonlyMap<Repository, RepositoryWork>,
): InnerRepository[] => {
  const outer = outermost(repositories.map(({ keep }) => keep))
  return outer.map((path) => {
    const [found] = repositories.filter((one) => isAtOrBelow(path, one.keep) && work.has(one))
    const why = found && work.get(found)
    if (found === undefined || why === undefined || found.keep === path) return { path, work: why }
    return { path, work: { kind: 'inside', name: shownPath(found.path), work: why } }
  })
}

/** Drops those inside another of them. */
export const outermost = (paths: readonly string[]): string[] =>
  [...new Set(paths)].filter((path) => !paths.some((other) => other !== path && isAtOrBelow(other, path))).sort()

const keepOf = (path: string, git: string, around: Surroundings): string => {
  const inner = /^(.*?\/\.git)\//.exec(`${path}/`)?.[1]
  if (inner !== undefined) return inner
  return coveredBy(path, [...around.gitlinks, ...around.untracked, ...around.ignored]) === undefined ? git : path
}

const isInGitDirectory = (path: string): boolean => `/${path}/`.includes('/.git/')

/** Test data that looks like a repository: all its files are in the tree's commits, or listed as changed. */
const isTracked = (path: string, { gitlinks, untracked, ignored }: Surroundings): boolean => {
  const others = [...gitlinks, ...untracked, ...ignored]
  return coveredBy(path, others) === undefined && !others.some((one) => one.startsWith(`${path}/`))
}

/** The entry that is the path or a directory above it. */
export const coveredBy = (path: string, entries: readonly string[]): string | undefined =>
  entries.find((entry) => isAtOrBelow(trimEndOf(entry, '/'), path))

const isAtOrBelow = (directory: string, path: string): boolean => path === directory || path.startsWith(`${directory}/`)
const parentOf = (path: string): string => path.slice(0, path.lastIndexOf('/'))
const absolute = (tree: Tree, path: string): string => join(tree.path, shownPath(path))

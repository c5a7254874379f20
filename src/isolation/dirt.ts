import { createHash } from 'node:crypto'
import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { RepoConfig } from '../domain/config.ts'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import type { Sha } from '../domain/names.ts'
import { bytesBelow, shownPath, toRaw } from '../domain/raw-path.ts'
import { type HalfDone, halfDone } from '../git/admin-dir.ts'
import type { Tree } from '../git/door.ts'
import { convertedFiles } from '../git/converted.ts'
import { isUntouchedByStat } from '../git/untouched.ts'
import { lookIntoIndex } from '../git/hidden.ts'
import { type Status, readStatus } from '../git/status.ts'
import type { IsolationContext } from './context.ts'
import { lookIntoSubmodules } from './submodules.ts'
import { sameEntries, walk } from './walk.ts'
import { isOurAddition } from './worktree/additions.ts'
import { unlessMissingSync } from '../domain/missing.ts'

/** What a tree holds beyond its commits. All paths are raw. */
export type Dirt = {
  readonly headSha: Sha | undefined
  readonly headBranch: string | undefined
  /** Tracked files that differ from HEAD, in the index or on disk, the unmerged ones included. */
  readonly changed: readonly string[]
  /** Submodules that stand at another commit than HEAD says. */
  readonly gitlinks: readonly string[]
  readonly untracked: readonly string[]
  /** Laid down by us and still as laid: nobody's work, but part of a restore point. */
  readonly additions: readonly string[]
  /** Edits behind assume-unchanged or skip-worktree. */
  readonly hidden: readonly string[]
  /** Clean in git's eyes, and yet their bytes may not be what a checkout writes. */
  readonly converted: readonly string[]
  readonly halfDone: readonly HalfDone[]
  /** `.git` entries that nothing else in this list speaks of: kept whole. */
  readonly strays: readonly string[]
  readonly submodules: readonly string[]
  /** Repositories that are in the index and have their git directory in the tree: nothing else holds their commits. */
  readonly embedded: readonly string[]
  readonly ignored: readonly string[]
  /** Each a reason not to remove. */
  readonly problems: readonly { readonly detail: string }[]
  /** Changes whenever any of the above does, or one of those files is written again. */
  readonly fingerprint: string
  /** What a quicker second look goes by; undefined where there was no full first one. */
  readonly glance: { readonly directories: ReadonlyMap<string, string>; readonly index: string } | undefined
}

/** Looks at everything that `git worktree remove` would delete without a word. Throws when it cannot look. */
export const readDirt = async (
  context: IsolationContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  tree: Tree,
  config: RepoConfig,
): Promise<Dirt> => {
  const stamp = indexStamp(tree)
  const regenerable = new Set(context.settings.regenerable)
  const [status, index, converted, { gits, directories }] = await Promise.all([
    readStatus(context.git, tree),
    lookIntoIndex(context.git, tree),
    convertedFiles(context.git, tree),
    walk(tree.path, regenerable),
  ])
  const inner = await lookIntoSubmodules(context, tree, index.gitlinks)
  const known = [...index.gitlinks, ...status.untracked, ...status.ignored].map(({ bytes }) => toRaw(bytes))
  const strays = gits.filter((path) => !isCovered(path, known, regenerable))
  const untracked: string[] = []
  const additions: string[] = []
  for (const { path, bytes } of status.untracked) {
    const ours = await isOurAddition(context, codebase, { ...environment, path: tree.path }, config, path)
    ;(ours ? additions : untracked).push(toRaw(bytes))
  }
  const found = {
    headSha: status.headSha,
    headBranch: status.branch,
    changed: changedPaths(status),
    gitlinks: status.changed.filter(({ submodule }) => submodule).map(({ bytes }) => toRaw(bytes)),
    untracked,
    additions,
    hidden: index.hidden.map(({ bytes }) => toRaw(bytes)),
    converted: converted.map(({ bytes }) => toRaw(bytes)),
    halfDone: halfDone(tree.gitDir),
    strays,
    submodules: inner.dirty,
    embedded: inner.embedded,
    ignored: [...status.ignored.map(({ bytes }) => toRaw(bytes)), ...inner.ignored],
  }
  const fingerprint = fingerprintOf(tree, found, regenerable)
  return { ...found, problems: problemsOf(found), fingerprint, glance: { directories, index: stamp } }
}

/**
 * The second look, after the tree was moved out of everybody's way: is all as it was saved? Of a clean tree git need not
 * be asked for everything again: directories tell whether an entry came or went, and `diff-files` whether a tracked file
 * was written (40 ms instead of 100 with 30,000 files). Any doubt, and everything is asked again.
 */
export const isAsSaved = async (
  context: IsolationContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  moved: Tree,
  config: RepoConfig,
  saved: Dirt,
): Promise<boolean> => {
  const { glance, problems, fingerprint, ...found } = saved
  const regenerable = new Set(context.settings.regenerable)
  const quick = problems.length === 0 && glance !== undefined && saved.embedded.length === 0
  if (quick && indexStamp(moved) === glance.index && sameEntries(moved.path, glance.directories)) {
    const untouched = await isUntouchedByStat(context.git, moved)
    if (untouched && fingerprintOf(moved, found, regenerable) === fingerprint) return true
  }
  return (await readDirt(context, codebase, environment, moved, config)).fingerprint === fingerprint
}

const indexStamp = (tree: Tree): string => {
  const found = lstatSync(join(tree.gitDir, 'index'), { bigint: true, throwIfNoEntry: false })
  return found === undefined ? '-' : `${found.ino},${found.size},${found.mtimeNs}`
}

/** Inside a submodule, an untracked repository or an ignored directory, which are kept (or refused) as such. */
const isCovered = (path: string, known: readonly string[], regenerable: ReadonlySet<string>): boolean =>
  known.some((one) => {
    const plain = one.replace(/\/+$/, '')
    const last = shownPath(plain.slice(plain.lastIndexOf('/') + 1))
    return path.startsWith(`${plain}/`) && !regenerable.has(last)
  })

type Found = Omit<Dirt, 'problems' | 'fingerprint' | 'glance'>

const changedPaths = (status: Status): string[] => [
  ...status.changed.filter(({ submodule }) => !submodule).map(({ bytes }) => toRaw(bytes)),
  ...status.unmerged.map(({ bytes }) => toRaw(bytes)),
]

const problemsOf = ({
  changed,
  gitlinks,
  untracked,
  hidden,
  halfDone,
  submodules,
  strays,
}: Found): { detail: string }[] => {
  const problems: string[] = []
  if (changed.length > 0) problems.push(`${files(changed.length)} changed`)
  if (untracked.length > 0) problems.push(`${untracked.length} untracked`)
  if (hidden.length > 0) {
    problems.push(
      `${files(hidden.length)} changed behind assume-unchanged or skip-worktree: ${hidden.slice(0, 3).map(shownPath).join(', ')}`,
    )
  }
  for (const operation of halfDone) problems.push(`a ${operation} is half done`)
  for (const submodule of gitlinks) problems.push(`submodule ${shownPath(submodule)} is at another commit`)
  for (const submodule of submodules) problems.push(`submodule ${shownPath(submodule)} has changes`)
  for (const stray of strays) problems.push(`there is a repository inside: ${shownPath(stray)}`)
  return problems.map((detail) => ({ detail }))
}

const files = (count: number): string => (count === 1 ? '1 file' : `${count} files`)

/** A file written again in between has another time or size; directories (ignored, nested repositories) are walked. */
const fingerprintOf = (tree: Tree, found: Found, regenerable: ReadonlySet<string>): string => {
  const hash = createHash('sha256').update(JSON.stringify(found))
  const visit = (path: string): void => {
    const at = unlessMissingSync(() => lstatSync(bytesBelow(tree.path, path), { bigint: true }))
    hash.update(at === undefined ? '-' : `${path},${at.mode},${at.size},${at.mtimeNs},${at.ino};`)
    // What no restore point keeps need not be looked at twice: node_modules alone would cost seconds.
    if (at?.isDirectory() !== true || regenerable.has(shownPath(path.slice(path.lastIndexOf('/') + 1)))) return
    for (const name of readdirSync(bytesBelow(tree.path, path), { encoding: 'buffer' })) visit(`${path}/${toRaw(name)}`)
  }
  const paths = [...found.changed, ...found.untracked, ...found.additions, ...found.hidden, ...found.ignored]
  for (const path of [...paths, ...found.submodules, ...found.embedded, ...found.converted])
    visit(path.replace(/\/+$/, ''))
  return hash.digest('hex')
}

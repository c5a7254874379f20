import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Codebase } from '../../../domain/environment.ts'
import { type Sha, isSha } from '../../../domain/names.ts'
import { shownPath, toRaw } from '../../../domain/raw-path.ts'
import { trimEndOf } from '../../../domain/trim-end.ts'
import { halfDone, readHead } from '../../../git/admin-dir.ts'
import type { Tree } from '../../../git/door.ts'
import { withPrivateIndex } from '../../../git/private-index.ts'
import { resolveCommit } from '../../../git/refs.ts'
import { readTree } from '../../../git/objects.ts'
import { type Status, readStatus } from '../../../git/status.ts'
import type { TreePath } from '../../../git/tree-path.ts'
import { copyUntrusted } from '../../../process/files/read-untrusted.ts'
import type { JournalEntry } from '../../../store/store.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import { baseAndConfig } from '../../codebases/base-and-config.ts'
import type { IsolationContext } from '../../context.ts'
import type { Dirt } from './look/dirt.ts'
import { type InnerRepository, repositoriesInside } from './look/repositories-inside.ts'
import { type DirtySubmodule, hasFilesWithoutGit } from './look/submodules.ts'
import { walk } from '../../walk.ts'
import { isOurAddition } from './provision/additions.ts'
import { type ExpectedContent, expectedContent } from './provision/expected-content.ts'
import type { Keeping } from './kind.ts'
import { namedIn } from './restore-point/named-by-record.ts'
import { discardRestorePoint, writeRestorePoint } from './restore-point/restore-point.ts'

/**
 * A creation that a crash interrupted left a directory that nobody was told of; but somebody may have found it and
 * worked in it. What is there beyond the checkout goes into a restore point before the directory goes.
 */
export const saveStrangersWork = async (
  context: IsolationContext,
  checkout: Keeping,
  codebase: Codebase,
  entry: JournalEntry,
  tree: Tree,
  start: string,
): Promise<'nothing' | 'saved' | 'cannot-keep'> => {
  // A recovery that was itself interrupted may have saved it already, or half of it.
  if ((await context.store.restorePoints.get(entry.id)) !== undefined) return 'saved'
  await discardRestorePoint(context, codebase, entry.id)
  if (!isSha(start)) return 'cannot-keep'
  const dirt = await beyondCheckout(
    context,
    checkout,
    codebase,
    tree,
    start,
    await expectedContent(context, tree, entry, start),
  )
  if (dirt === undefined) return 'nothing'
  const environment =
    entry.environmentId === undefined ? undefined : await context.store.environments.get(entry.environmentId)
  // A spare is nobody's environment, so there is nothing to restore it as: it is left where it is.
  if (environment === undefined) return 'cannot-keep'
  await writeRestorePoint(context, {
    checkout,
    codebase,
    environment,
    tree,
    dirt,
    fate: { tip: dirt.headSha },
    id: entry.id,
  })
  return 'saved'
}

/** Against a fresh index of the start commit: the tree's own may be half written. */
const beyondCheckout = (
  context: IsolationContext,
  checkout: Keeping,
  codebase: Codebase,
  tree: Tree,
  start: Sha,
  laid: ExpectedContent,
): Promise<Dirt | undefined> =>
  withPrivateIndex(context.git, (indexFile) =>
    compareWith(context, checkout, codebase, tree, { indexFile, start, laid }),
  )

const compareWith = async (
  context: IsolationContext,
  checkout: Keeping,
  codebase: Codebase,
  tree: Tree,
  { indexFile, start, laid }: { readonly indexFile: string; readonly start: Sha; readonly laid: ExpectedContent },
): Promise<Dirt | undefined> => {
  const whole = await checkout.isWhole(tree)
  // Killed while it wrote the record: git cannot read that, so the repository itself is asked about the directory.
  const asked: Tree = whole ? tree : { ...repoOf(codebase), gitDir: codebase.repoPath, path: tree.path }
  await context.git.run({ operation: 'read-tree', at: asked, args: ['read-tree', start], indexFile, locks: true })
  const status = await readStatus(context.git, asked, { indexFile })
  const { config } = await baseAndConfig(context, codebase)
  const theirs = async (paths: readonly TreePath[]): Promise<string[]> => {
    const found: string[] = []
    for (const { bytes, path } of paths) {
      if (await isOurAddition(context, codebase, tree, config, path)) continue
      if (!(await laid.has(toRaw(bytes)))) found.push(toRaw(bytes))
    }
    return found
  }
  const changed = await theirs(status.changed)
  const untracked = await theirs(status.untracked)
  const ignored = (await theirs(status.ignored)).filter((path) => !isRegenerable(context, path))
  const tracked = await readTree(context.git, { commonDir: tree.commonDir }, start)
  const gitlinks = tracked.filter(({ mode }) => mode === '160000').map(({ bytes }) => toRaw(bytes))
  const repositories = await repositoriesOf(context, tree, gitlinks, status, laid)
  const submodules = await submodulesOf(tree, gitlinks, laid)
  const head = whole ? await resolveCommit(context.git, tree, 'HEAD') : undefined
  const half = laid.halfDone ? [] : halfDone(tree.gitDir)
  const named = await namedIn(context, tree, await branchOf(tree), laid.commits, asked)
  // What the restore point holds was brought back, and is still in the point.
  const objects = laid.halfDone ? [] : [...named.tags.keys(), ...named.others]
  const work = repositories.filter((one) => one.work !== undefined)
  const found = [changed, untracked, ignored, half, named.commits, objects, work, submodules].some(
    (list) => list.length > 0,
  )
  if (!found && (head === undefined || laid.commits.includes(head))) return undefined
  await keepIndexReadable(tree, indexFile)
  return {
    headSha: head ?? start,
    headBranch: await branchOf(tree),
    changed,
    gitlinks: [],
    submodulePaths: gitlinks,
    untracked,
    additions: [],
    hidden: [],
    converted: [],
    convertedSubmodules: [],
    halfDone: half,
    record: '',
    submodules,
    repositories,
    worktrees: [],
    ignored,
    special: [],
    skippedButThere: undefined,
    problems: [],
    fingerprint: '',
    glance: undefined,
  }
}

/** Those that the interrupted operation itself was bringing back are still where it took them from. */
const repositoriesOf = async (
  context: IsolationContext,
  tree: Tree,
  gitlinks: readonly string[],
  status: Status,
  laid: ExpectedContent,
): Promise<InnerRepository[]> => {
  const raw = (paths: readonly TreePath[]): string[] => paths.map(({ bytes }) => toRaw(bytes))
  const { repositories } = await repositoriesInside(context, tree, await walk(tree.path, context.clock()), {
    gitlinks,
    untracked: raw(status.untracked),
    ignored: raw(status.ignored),
    recordedPath: tree.path,
  })
  const found: InnerRepository[] = []
  for (const one of repositories) if (!(await laid.has(`${one.path}/`))) found.push(one)
  return found
}

/** Files that git status does not show. Those being laid down are still where they came from. */
const submodulesOf = async (
  tree: Tree,
  gitlinks: readonly string[],
  laid: ExpectedContent,
): Promise<DirtySubmodule[]> => {
  const found: DirtySubmodule[] = []
  for (const path of gitlinks) {
    if (!(await hasFilesWithoutGit(tree, path)) || (await laid.has(`${path}/`))) continue
    found.push({ path, problem: 'has files but no .git' })
  }
  return found
}

const isRegenerable = ({ settings }: IsolationContext, path: string): boolean =>
  settings.regenerable.includes(trimEndOf(shownPath(path), '/').split('/').at(-1) ?? '')

const branchOf = async (tree: Tree): Promise<string | undefined> => {
  const head = await readHead(tree.gitDir)
  return head !== undefined && 'branch' in head ? head.branch : undefined
}

/** Killed before git wrote an index: the restore point gets the one of the start commit. */
const keepIndexReadable = async (tree: Tree, indexFile: string): Promise<void> => {
  const own = join(tree.gitDir, 'index')
  if (existsSync(tree.gitDir) && !existsSync(own)) await copyUntrusted(indexFile, own)
}

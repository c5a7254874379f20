import { existsSync } from 'node:fs'
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Codebase } from '../../../domain/environment.ts'
import { type Sha, isSha } from '../../../domain/names.ts'
import { bytesBelow, toRaw } from '../../../domain/raw-path.ts'
import { halfDone, readHead } from '../../../git/admin-dir.ts'
import type { Tree } from '../../../git/door.ts'
import { withPrivateIndex } from '../../../git/private-index.ts'
import { resolveCommit } from '../../../git/refs.ts'
import { readTree, type ListedEntry } from '../../../git/objects.ts'
import { indexChanges } from '../../../git/snapshot.ts'
import { type Status, readStatus } from '../../../git/status.ts'
import { existingObjects } from '../../../git/unreachable.ts'
import type { TreePath } from '../../../git/tree-path.ts'
import { copyUntrusted } from '../../../process/files/read-untrusted.ts'
import type { JournalEntry } from '../../../store/store.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import { baseAndConfig } from '../../codebases/base-and-config.ts'
import type { IsolationContext } from '../../context.ts'
import type { Dirt } from './look/dirt.ts'
import { type InnerRepository, repositoriesInside } from './look/repositories-inside.ts'
import { walk } from '../../walk.ts'
import { isOurAddition } from './provision/additions.ts'
import { type ExpectedContent, expectedContent, hasMode } from './provision/expected-content.ts'
import type { RestorePointSource, Salvaged } from './kind.ts'
import { namedIn } from './restore-point/named-by-record.ts'
import { discardRestorePoint, writeRestorePoint } from './restore-point/restore-point.ts'
import { unlessMissing } from '../../../domain/missing.ts'
import { convertedFiles } from '../../../git/converted.ts'
import { withoutLargeFiles } from '../../../git/large-files.ts'
import type { Setting } from '../../../git/neutral.ts'
import { checkoutSettings } from './checkout-settings.ts'
import { convertedEdits } from './look/converted-edits.ts'
import { isBeginningOf, sameBytes } from './provision/same-content.ts'
import { changedSubmodules, isRegenerable } from './salvage-submodules.ts'

/**
 * Somebody may have found the directory of a creation that failed or that a crash interrupted, and worked in it. What is
 * there beyond the checkout goes into a restore point before the directory goes. What setup wrote cannot be told from
 * that, so the rules are those of a removal: regenerable directories are left out, and ignored files have a limit.
 */
export const saveOthersWork = async (
  context: IsolationContext,
  checkout: RestorePointSource,
  codebase: Codebase,
  entry: JournalEntry,
  tree: Tree,
  start: string,
): Promise<Salvaged> => {
  // One of an undoing that was interrupted may be half written, or older than what is here now.
  await discardRestorePoint(context, codebase, entry.id)
  if (!isSha(start)) return 'cannot-keep'
  const environment =
    entry.environmentId === undefined ? undefined : await context.store.environments.get(entry.environmentId)
  const isWhole = await checkout.isWhole(tree)
  const laid = await expectedContent(context, tree, entry, start, { isWhole })
  // A restore brings large files from its restore point; a spare is made as our own work is.
  const settings =
    entry.data['pointId'] === undefined ? checkoutSettings(environment?.trust ?? 'own') : withoutLargeFiles
  const dirt = await beyondCheckout(context, checkout, codebase, tree, { start, laid, settings, isWhole })
  if (dirt === undefined) return 'nothing'
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
  checkout: RestorePointSource,
  codebase: Codebase,
  tree: Tree,
  expected: Expected,
): Promise<Dirt | undefined> =>
  withPrivateIndex(context.git, (indexFile) =>
    compareWith(context, checkout, codebase, tree, { indexFile, ...expected }),
  )

type Expected = {
  readonly start: Sha
  readonly laid: ExpectedContent
  readonly settings: readonly Setting[]
  /** Git can be asked about the tree. */
  readonly isWhole: boolean
}

const compareWith = async (
  context: IsolationContext,
  checkout: RestorePointSource,
  codebase: Codebase,
  tree: Tree,
  { indexFile, start, laid, settings, isWhole }: Expected & { readonly indexFile: string },
): Promise<Dirt | undefined> => {
  // Killed while it wrote the record: git cannot read that, so the repository itself is asked about the directory.
  const asked: Tree = isWhole ? tree : { ...repoOf(codebase), gitDir: codebase.repoPath, path: tree.path }
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
  const tracked = await readTree(context.git, { commonDir: tree.commonDir }, start)
  const shown = new Set(status.changed.map(({ bytes }) => toRaw(bytes)))
  const converted = (await convertedFiles(context.git, asked, { indexFile }))
    .map(({ bytes }) => toRaw(bytes))
    .filter((path) => !shown.has(path))
  const { changed, edited } = await notOfCheckout(context, asked, tracked, {
    start,
    laid,
    settings,
    changed: await theirs(status.changed),
    converted,
  })
  const staged = isWhole ? await stagedOnly(context, tree, start, laid) : []
  const untracked = await theirs(status.untracked)
  const ignored = (await theirs(status.ignored)).filter((path) => !isRegenerable(context, path))
  const gitlinks = tracked.filter(({ mode }) => mode === '160000').map(({ bytes }) => toRaw(bytes))
  const repositories = await repositoriesOf(context, tree, gitlinks, status, laid)
  const submodules = await changedSubmodules(context, tree, gitlinks, { laid, settings })
  const head = isWhole ? await resolveCommit(context.git, tree, 'HEAD') : undefined
  const half = laid.halfDone ? [] : halfDone(tree.gitDir)
  const named = await namedIn(context, tree, await branchOf(tree), laid.commits, asked)
  // What the restore point holds was brought back, and is still in the point.
  const objects = laid.halfDone ? [] : [...named.tags.keys(), ...named.others]
  const work = repositories.filter((one) => one.work !== undefined)
  const tips = isWhole ? await othersTips(context, checkout, codebase, tree) : []
  const own = isWhole && !laid.halfDone ? await checkout.ownWork(context, codebase, tree) : []
  const found = [
    changed,
    staged,
    edited,
    untracked,
    ignored,
    half,
    named.commits,
    objects,
    work,
    submodules,
    tips,
    own,
  ].some((list) => list.length > 0)
  if (!found && (head === undefined || laid.commits.includes(head))) return undefined
  await keepIndexReadable(tree, indexFile)
  return {
    headSha: head ?? start,
    headBranch: await branchOf(tree),
    changed: [...new Set([...changed, ...staged])],
    gitlinks: [],
    submodulePaths: gitlinks,
    untracked,
    additions: [],
    hidden: [],
    converted,
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

/** What the tree's own index has and neither the checkout nor the restore point does; its file may be gone since. */
export const stagedOnly = async (
  context: Pick<IsolationContext, 'git'>,
  tree: Tree,
  start: Sha,
  laid: ExpectedContent,
): Promise<string[]> => {
  // Killed before git wrote it: without one, git would call everything deleted.
  if (!existsSync(join(tree.gitDir, 'index'))) return []
  const changes = await indexChanges(context.git, tree, start)
  return changes.filter((change) => !laid.staged(change)).map(({ path }) => path)
}

/** Commits in refs that only the checkout has: the repository knows every commit that it was made with. */
const othersTips = async (
  context: IsolationContext,
  checkout: RestorePointSource,
  codebase: Codebase,
  tree: Tree,
): Promise<Sha[]> => {
  const tips = await checkout.tipsToKeep(context, codebase, tree)
  const known = tips.length === 0 ? new Set() : await existingObjects(context.git, repoOf(codebase), tips)
  return tips.filter((sha) => !known.has(sha))
}

/**
 * Git status looks through filters and line ends: it hides some edits, and shows files that were only half written. A
 * file is somebody's work unless it is what a checkout writes or, if the checkout may have been interrupted, the
 * beginning of it.
 */
const notOfCheckout = async (
  context: Pick<IsolationContext, 'git'>,
  tree: Tree,
  tracked: readonly ListedEntry[],
  { start, laid, settings, changed, converted }: Omit<Expected, 'isWhole'> & Pick<Dirt, 'changed' | 'converted'>,
): Promise<{ readonly changed: readonly string[]; readonly edited: readonly string[] }> => {
  const files = new Map(
    tracked.filter(({ mode }) => mode.startsWith('100')).map((entry) => [toRaw(entry.bytes), entry]),
  )
  const compared: string[] = []
  for (const path of [...changed, ...converted]) {
    const found = await unlessMissing(lstat(bytesBelow(tree.path, path)))
    if (files.has(path) && found?.isFile() === true) compared.push(path)
  }
  const isSame = laid.isComplete ? sameBytes : isBeginningOf
  const edits = new Set(await convertedEdits(context, tree, { commit: start, paths: compared, settings, isSame }))
  const laidDown = new Set<string>()
  for (const path of compared) {
    const isAsLaid = !laid.isComplete || (await hasMode(bytesBelow(tree.path, path), files.get(path)))
    if (isAsLaid && !edits.has(path)) laidDown.add(path)
  }
  const edited: string[] = []
  for (const path of converted) if (edits.has(path) && !(await laid.has(path))) edited.push(path)
  return { changed: changed.filter((path) => !laidDown.has(path)), edited }
}

/** Those that the interrupted operation itself was bringing back are still where it took them from. */
const repositoriesOf = async (
  context: Pick<IsolationContext, 'git' | 'clock'>,
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

export const branchOf = async (tree: Tree): Promise<string | undefined> => {
  const head = await readHead(tree.gitDir)
  return head !== undefined && 'branch' in head ? head.branch : undefined
}

/** Killed before git wrote an index: the restore point gets the one of the start commit. */
const keepIndexReadable = async (tree: Tree, indexFile: string): Promise<void> => {
  const own = join(tree.gitDir, 'index')
  if (existsSync(tree.gitDir) && !existsSync(own)) await copyUntrusted(indexFile, own)
}

import { existsSync } from 'node:fs'
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import { type Sha, isSha } from '../../../domain/names.ts'
import { bytesBelow, toRaw } from '../../../domain/text/raw-path.ts'
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
import { isAppError } from '../../../domain/errors.ts'
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
 * Someone may have worked in the directory of a creation that failed or was interrupted by a crash. Anything beyond the
 * checkout goes into a restore point before the directory is deleted. Setup's output can't be told from that, so the
 * rules are those of a removal: regenerable directories are left out, and ignored files have a limit.
 */
export const saveOthersWork = async (
  context: IsolationContext,
  checkout: RestorePointSource,
  codebase: Codebase,
  entry: JournalEntry,
  tree: Tree,
  start: string,
): Promise<Salvaged> => {
  // One from an interrupted undo may be incomplete or out of date.
  await discardRestorePoint(context, codebase, entry.id)
  if (!isSha(start)) return 'cannot-keep'
  const environment = await environmentOf(context, entry)
  const isWhole = await checkout.isWhole(tree)
  const content = await expectedContent(context, tree, entry, start, { isWhole })
  // A restore brings large files from its restore point; a spare is made like our own work.
  const settings =
    entry.data['pointId'] === undefined ? checkoutSettings(environment?.trust ?? 'own') : withoutLargeFiles
  const dirt = await beyondCheckout(context, checkout, codebase, tree, { start, content, settings, isWhole })
  if (dirt === undefined) return 'nothing'
  // A spare isn't an environment, so it can't be restored as one: leave it where it is.
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

/** Undefined for a spare. */
export const environmentOf = async (
  { store }: Pick<IsolationContext, 'store'>,
  { environmentId }: JournalEntry,
): Promise<IsolatedEnvironment | undefined> =>
  environmentId === undefined ? undefined : store.environments.get(environmentId)

/** Uses a fresh index of the start commit: the tree's own may be half written. */
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
  readonly content: ExpectedContent
  readonly settings: readonly Setting[]
  /** Git can read the tree. */
  readonly isWhole: boolean
}

const compareWith = async (
  context: IsolationContext,
  checkout: RestorePointSource,
  codebase: Codebase,
  tree: Tree,
  { indexFile, start, content, settings, isWhole }: Expected & { readonly indexFile: string },
): Promise<Dirt | undefined> => {
  // Git was killed while writing the record and can't read it, so ask the repository about the directory.
  const asked: Tree = isWhole ? tree : { ...repoOf(codebase), gitDir: codebase.repoPath, path: tree.path }
  await context.git.run({ operation: 'read-tree', at: asked, args: ['read-tree', start], indexFile, locks: true })
  const status = await readStatus(context.git, asked, { indexFile })
  const { config } = await baseAndConfig(context, codebase)
  const theirs = async (paths: readonly TreePath[]): Promise<string[]> => {
    const found: string[] = []
    for (const { bytes, path } of paths) {
      if (await isOurAddition(context, codebase, tree, config, path)) continue
      if (!(await content.has(toRaw(bytes)))) found.push(toRaw(bytes))
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
    content,
    settings,
    changed: await theirs(status.changed),
    converted,
  })
  const staged = isWhole ? await stagedOnly(context, tree, start, content) : []
  const untracked = await theirs(status.untracked)
  const ignored = (await theirs(status.ignored)).filter((path) => !isRegenerable(context, path))
  const gitlinks = tracked.filter(({ mode }) => mode === '160000').map(({ bytes }) => toRaw(bytes))
  const repositories = await repositoriesOf(context, tree, gitlinks, status, content)
  const submodules = await changedSubmodules(context, tree, gitlinks, { content, settings })
  const head = isWhole ? await resolveCommit(context.git, tree, 'HEAD') : undefined
  const half = content.halfDone ? [] : halfDone(tree.gitDir)
  const named = await namedIn(context, tree, await branchOf(tree), content.commits, asked)
  // These were restored from the restore point, which still has them.
  const objects = content.halfDone ? [] : [...named.tags.keys(), ...named.others]
  const work = repositories.filter((one) => one.work !== undefined)
  const tips = isWhole ? await othersTips(context, checkout, codebase, tree) : []
  const own = isWhole && !content.halfDone ? await checkout.ownWork(context, codebase, tree) : []
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
  if (!found && (head === undefined || content.commits.includes(head))) return undefined
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

/** Staged content that neither the checkout nor the restore point has; its file may be gone since. */
export const stagedOnly = async (
  context: Pick<IsolationContext, 'git'>,
  tree: Tree,
  start: Sha,
  content: ExpectedContent,
): Promise<string[]> => {
  // Git was killed before writing it; without one, all files look deleted.
  if (!existsSync(join(tree.gitDir, 'index'))) return []
  const changes = await indexChanges(context.git, tree, start)
  return changes.filter((change) => !content.staged(change)).map(({ path }) => path)
}

/** Commits in refs that only the checkout has: the repository has every commit it was created with. */
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
 * Git status applies filters and line ends: it hides some edits, and shows half-written files. A file is someone's work
 * unless it is what a checkout writes or, if the checkout may have been interrupted, the beginning of it.
 */
const notOfCheckout = async (
  context: Pick<IsolationContext, 'git'>,
  tree: Tree,
  tracked: readonly ListedEntry[],
  { start, content, settings, changed, converted }: Omit<Expected, 'isWhole'> & Pick<Dirt, 'changed' | 'converted'>,
): Promise<{ readonly changed: readonly string[]; readonly edited: readonly string[] }> => {
  const files = new Map(
    tracked.filter(({ mode }) => mode.startsWith('100')).map((entry) => [toRaw(entry.bytes), entry]),
  )
  const compared: string[] = []
  for (const path of [...changed, ...converted]) {
    const found = await unlessMissing(lstat(bytesBelow(tree.path, path)))
    if (files.has(path) && found?.isFile() === true) compared.push(path)
  }
  const isSame = content.isComplete ? sameBytes : isBeginningOf
  const comparison = { commit: start, paths: compared, settings, isSame }
  const edits = new Set(
    await convertedEdits(context, tree, comparison).catch((error: unknown) => {
      // A filter that doesn't work any more: what can't be compared is saved.
      if (isAppError(error, 'git-failed') || isAppError(error, 'timeout')) return compared
      throw error
    }),
  )
  const laidDown = new Set<string>()
  for (const path of compared) {
    const isAsLaid = !content.isComplete || (await hasMode(bytesBelow(tree.path, path), files.get(path)))
    if (isAsLaid && !edits.has(path)) laidDown.add(path)
  }
  const edited: string[] = []
  for (const path of converted) if (edits.has(path) && !(await content.has(path))) edited.push(path)
  return { changed: changed.filter((path) => !laidDown.has(path)), edited }
}

/** Ignores those that the interrupted operation was restoring: their source still exists. */
const repositoriesOf = async (
  context: Pick<IsolationContext, 'git' | 'clock'>,
  tree: Tree,
  gitlinks: readonly string[],
  status: Status,
  content: ExpectedContent,
): Promise<InnerRepository[]> => {
  const raw = (paths: readonly TreePath[]): string[] => paths.map(({ bytes }) => toRaw(bytes))
  const { repositories } = await repositoriesInside(context, tree, await walk(tree.path, context.clock()), {
    gitlinks,
    untracked: raw(status.untracked),
    ignored: raw(status.ignored),
    recordedPath: tree.path,
  })
  const found: InnerRepository[] = []
  for (const one of repositories) if (!(await content.has(`${one.path}/`))) found.push(one)
  return found
}

export const branchOf = async (tree: Tree): Promise<string | undefined> => {
  const head = await readHead(tree.gitDir)
  return head !== undefined && 'branch' in head ? head.branch : undefined
}

/** Git was killed before writing an index: the restore point gets the start commit's. */
const keepIndexReadable = async (tree: Tree, indexFile: string): Promise<void> => {
  const own = join(tree.gitDir, 'index')
  if (existsSync(tree.gitDir) && !existsSync(own)) await copyUntrusted(indexFile, own)
}

import { lstat } from 'node:fs/promises'
import type { Codebase, IsolatedEnvironment } from '../../../../domain/environment.ts'
import type { Sha } from '../../../../domain/names.ts'
import { bytesBelow, rawBytes, toRaw } from '../../../../domain/text/raw-path.ts'
import { halfDone } from '../../../../git/admin-dir.ts'
import { hashFiles, syncRecentObjects } from '../../../../git/blobs.ts'
import type { Tree } from '../../../../git/door.ts'
import { commitTree } from '../../../../git/objects.ts'
import { borrowsObjects } from '../../../../git/own-objects.ts'
import { type Snapshot, type SnapshotEntry, indexChanges, writeSnapshot } from '../../../../git/snapshot.ts'
import { type TreePath, treePath } from '../../../../git/tree-path.ts'
import type { IsolationContext } from '../../../context.ts'
import type { Dirt } from '../look/dirt.ts'
import type { BranchFate } from '../branch-fate.ts'
import type { RestorePointSource } from '../kind.ts'
import { author, heldByRefs, holdNamed, namedIn, together } from './named-by-record.ts'
import { unlessMissing } from '../../../../domain/missing.ts'

export type ToKeep = {
  readonly checkout: RestorePointSource
  readonly codebase: Codebase
  readonly environment: IsolatedEnvironment
  readonly tree: Tree
  /** Undefined if the files are missing: then only what git's record has is kept. */
  readonly dirt: Dirt | undefined
  readonly fate: Pick<BranchFate, 'tip'>
}

export type KeptObjects = {
  readonly commit: Sha
  readonly dirty: boolean
  /** Names that git refuses. */
  readonly refused: readonly string[]
  /** The commit of `holdNamed`; undefined if there are no tags to recreate. */
  readonly tags: Sha | undefined
}

/** A commit that reaches everything: HEAD, the branch, reflog-only commits, index and files as trees. */
export const keepObjects = async (
  context: IsolationContext,
  save: ToKeep,
  head: Sha | undefined,
): Promise<KeptObjects> => {
  const { tree, dirt, environment, fate } = save
  const tips = [...new Set([head, fate.tip].filter((sha) => sha !== undefined))]
  const kept = await save.checkout.tipsToKeep(context, save.codebase, tree)
  const named = together(await namedIn(context, tree, environment.branch, tips), await heldByRefs(context, tree))
  // The agent's git doesn't sync its objects. Older ones have long been on disk.
  syncRecentObjects(tree.commonDir, environment.createdAt - hour)
  const held = await holdNamed(context, tree, named)
  const parents = [...new Set([...tips, ...kept, ...named.commits, ...(held === undefined ? [] : [held])])]
  const snapshot =
    dirt === undefined
      ? await snapshotOfIndex(context, tree, head)
      : isDirty(dirt)
        ? await snapshotOf(context, tree, dirt, head)
        : undefined
  const dirty = snapshot !== undefined
  const [only] = parents
  const refused = snapshot?.refused ?? []
  const tags = named.tags.size === 0 ? undefined : held
  const isEnough = snapshot === undefined && parents.length === 1 && !borrowsObjects(tree)
  if (isEnough && only !== undefined) return { commit: only, dirty, refused, tags }
  // The id makes each point's objects unique: its pack can be deleted without affecting other points.
  const message = `restore point of ${environment.branch}\n\nindex/ is the index, work/ the files with their raw bytes.\n\nEnvironment: ${environment.id}\n`
  const by = author(context)
  const files = snapshot ?? (await writeSnapshot(context.git, tree, []))
  const commit = await commitTree(context.git, tree, { tree: files.tree, parents, message, by }, { durable: true })
  return { dirty, commit, refused, tags }
}

const hour = 60 * 60 * 1000

export const isDirty = (dirt: Dirt): boolean =>
  [
    dirt.changed,
    dirt.gitlinks,
    dirt.untracked,
    dirt.additions,
    dirt.hidden,
    dirt.converted,
    dirt.halfDone,
    dirt.submodules,
  ].some((list) => list.length > 0) || dirt.headSha === undefined

const snapshotOf = async (
  context: Pick<IsolationContext, 'git'>,
  tree: Tree,
  dirt: Dirt,
  head: Sha | undefined,
): Promise<Snapshot> => {
  const index = await indexChanges(context.git, tree, head)
  const stage = (number: number): SnapshotEntry[] => index.filter((entry) => entry.stage === number)
  const listed = [...dirt.changed, ...dirt.untracked, ...dirt.additions, ...dirt.hidden, ...dirt.converted]
  const paths = [...new Set([...listed, ...(await filesInPlaceOf(tree, dirt.gitlinks))])]
  return writeSnapshot(context.git, tree, [
    { name: 'index', from: head, entries: stage(0) },
    {
      name: 'work',
      from: head,
      entries: await fileEntries(
        context,
        tree,
        paths.filter((path) => !path.endsWith('/')),
      ),
    },
    ...[1, 2, 3].map((number) => ({ name: `stage-${number}`, from: undefined, entries: stage(number) })),
  ])
}

/** Submodules replaced by a file or link. The directory of any other belongs to its own repository. */
const filesInPlaceOf = async (tree: Tree, gitlinks: readonly string[]): Promise<string[]> => {
  const files: string[] = []
  for (const path of gitlinks) {
    const found = await unlessMissing(lstat(bytesBelow(tree.path, path)))
    if (found?.isFile() === true || found?.isSymbolicLink() === true) files.push(path)
  }
  return files
}

/** Only the index of a missing tree is known: it is also the best guess of its files. */
const snapshotOfIndex = async (
  context: Pick<IsolationContext, 'git'>,
  tree: Tree,
  head: Sha | undefined,
): Promise<Snapshot | undefined> => {
  const index = await indexChanges(context.git, tree, head)
  if (index.length === 0 && halfDone(tree.gitDir).length === 0) return undefined
  const entries = index.filter(({ stage }) => stage === 0)
  return writeSnapshot(context.git, tree, [
    { name: 'index', from: head, entries },
    { name: 'work', from: head, entries },
    ...[1, 2, 3].map((number) => ({
      name: `stage-${number}`,
      from: undefined,
      entries: index.filter(({ stage }) => stage === number),
    })),
  ])
}

/** The files as they are: raw bytes, no filters, no line-end conversion; a link is its target. */
const fileEntries = async (
  context: Pick<IsolationContext, 'git'>,
  tree: Tree,
  paths: readonly string[],
): Promise<SnapshotEntry[]> => {
  const entries: SnapshotEntry[] = []
  const there: TreePath[] = []
  for (const path of paths) {
    const found = await unlessMissing(lstat(bytesBelow(tree.path, path)))
    // A directory or FIFO replaced the file: the file is gone, and its replacement is listed separately.
    if (found === undefined || !(found.isFile() || found.isSymbolicLink())) entries.push({ path, blob: undefined })
    else there.push(treePath(rawBytes(path)))
  }
  const hashed = await hashFiles(context.git, tree, there, { durable: true })
  return [...entries, ...hashed.map(({ bytes, mode, sha }) => ({ path: toRaw(bytes), blob: { mode, sha } }))]
}

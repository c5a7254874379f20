import { lstat, readFile, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import { type Sha, isSha } from '../../domain/names.ts'
import { bytesBelow, rawBytes, toRaw } from '../../domain/raw-path.ts'
import type { RestoreContents, RestorePoint } from '../../domain/restore-point.ts'
import { readHead } from '../../git/admin-dir.ts'
import type { Tree } from '../../git/door.ts'
import { fsyncObjects, hashFiles } from '../../git/blobs.ts'
import { commitTree } from '../../git/objects.ts'
import { resolveCommit, updateRefs } from '../../git/refs.ts'
import { type TreePath, treePath } from '../../git/tree-path.ts'
import { type SnapshotEntry, indexChanges, lostCommits, objectsBeyond, writeSnapshot } from '../../git/snapshot.ts'
import type { IsolationContext } from '../context.ts'
import type { Dirt } from '../dirt.ts'
import { makePrivateDirectory, syncDirectory, writeDurably } from '../durable.ts'
import { type Archived, archiveBesideGit } from './archive.ts'
import type { BranchFate } from './branch-fate.ts'
import { unlessMissing } from './missing.ts'
import { repoOf } from './plan.ts'

export type ToSave = {
  readonly codebase: Codebase
  readonly environment: IsolatedEnvironment
  /** Without a directory (it is missing) only what git's record knows is saved. */
  readonly tree: Tree
  readonly dirt: Dirt | undefined
  readonly fate: Pick<BranchFate, 'tip'>
  /** The operation's id: reconciliation finds an unfinished point by it. */
  readonly id: string
}

export const restoreDirectory = (context: IsolationContext, id: string): string => join(context.home, 'restore', id)
const refOf = (id: string): string => `refs/coppice/restore/${id}`
const day = 24 * 60 * 60 * 1000

/** Everything the environment holds, on disk before this resolves. Without it there is no removal. */
export const writeRestorePoint = async (context: IsolationContext, save: ToSave): Promise<RestorePoint> => {
  const { environment, codebase, id, tree, dirt } = save
  const directory = restoreDirectory(context, id)
  await makePrivateDirectory(directory)
  const archived = await archive(context, save, directory)
  await context.failpoint('save.archived')
  const head = await headOf(context, save)
  const commit = await keepObjects(context, save, head.sha)
  await context.failpoint('save.objects')
  const contents: RestoreContents = {
    environment,
    aliases: await context.store.environments.aliases(environment.id),
    head,
    dirty: dirt !== undefined && isDirty(dirt),
    ...archived,
  }
  const createdAt = context.clock()
  const point: RestorePoint = {
    id,
    host: context.host,
    codebaseId: codebase.id,
    environmentId: environment.id,
    createdAt,
    expiresAt: createdAt + context.settings.restoreDays * day,
    ref: refOf(id),
    commit,
    contents,
  }
  // Readable without the database, too.
  await writeDurably(join(directory, 'point.json'), `${JSON.stringify(point, undefined, 2)}\n`)
  await syncDirectory(directory)
  const made = await updateRefs(context.git, tree, [{ update: point.ref, to: commit, from: undefined }], {
    reason: `coppice: restore point of ${environment.branch}`,
    durable: true,
  })
  if (!made.ok) throw new AppError('restore-failed', `the restore point could not be kept: ${made.stderr.trim()}`)
  await context.failpoint('save.ref')
  await context.store.restorePoints.insert(point)
  await context.failpoint('save.recorded')
  return point
}

/** Takes a point away: of a removal that did not happen, or one whose time is over. Doing it twice is doing it once. */
export const discardRestorePoint = async (context: IsolationContext, codebase: Codebase, id: string): Promise<void> => {
  await updateRefs(context.git, repoOf(codebase), [{ delete: refOf(id), from: undefined }], {
    reason: 'coppice: expired',
  })
  await rm(restoreDirectory(context, id), { recursive: true, force: true })
  await context.store.restorePoints.remove(id)
}

const archive = async (context: IsolationContext, { tree, dirt }: ToSave, to: string): Promise<Archived> => {
  const nested = (dirt?.untracked ?? []).filter((path) => path.endsWith('/'))
  return archiveBesideGit({
    from: tree.path,
    to,
    adminDir: tree.gitDir,
    ignored: dirt?.ignored ?? [],
    nested: [...nested, ...(dirt?.submodules ?? [])],
    regenerable: context.settings.regenerable,
    limitBytes: context.settings.restoreIgnoredBytes,
  })
}

const headOf = async (context: IsolationContext, { tree, dirt }: ToSave): Promise<RestoreContents['head']> => {
  const head = await readHead(tree.gitDir)
  const branch = head !== undefined && 'branch' in head ? head.branch : undefined
  const sha = dirt?.headSha ?? (head === undefined ? undefined : await resolveCommit(context.git, tree, 'HEAD'))
  return { branch, sha }
}

/** A commit that reaches everything: HEAD, the branch, what only reflogs know, index and files as trees. */
const keepObjects = async (context: IsolationContext, save: ToSave, head: Sha | undefined): Promise<Sha> => {
  const { tree, dirt, environment, fate } = save
  const tips = [...new Set([head, fate.tip].filter((sha) => sha !== undefined))]
  const named = await shasIn(tree, environment.branch)
  const lost = await lostCommits(
    context.git,
    tree,
    named.filter((sha) => !tips.includes(sha)),
    tips,
  )
  const parents = [...tips, ...lost]
  const known = environment.startSha === undefined ? [] : [environment.startSha]
  const fresh = parents.filter((sha) => !known.includes(sha))
  if (fresh.length > 0) fsyncObjects(tree.commonDir, await objectsBeyond(context.git, tree, fresh, known))
  const snapshot = dirt !== undefined && isDirty(dirt) ? await snapshotOf(context, tree, dirt, head) : undefined
  const [only] = parents
  if (snapshot === undefined && only !== undefined && parents.length === 1) return only
  const message = `restore point of ${environment.branch}\n\nindex/ is the index, work/ the files with their raw bytes.\n`
  const by = { name: 'Coppice', email: 'coppice@localhost', at: context.clock() }
  const kept = snapshot ?? (await writeSnapshot(context.git, tree, []))
  return commitTree(context.git, tree, { tree: kept, parents, message, by }, { durable: true })
}

const isDirty = (dirt: Dirt): boolean =>
  dirt.changed.length + dirt.untracked.length + dirt.additions.length + dirt.hidden.length + dirt.halfDone.length > 0

const snapshotOf = async (context: IsolationContext, tree: Tree, dirt: Dirt, head: Sha | undefined): Promise<Sha> => {
  const index = head === undefined ? [] : await indexChanges(context.git, tree, head)
  const stage = (number: number): SnapshotEntry[] => index.filter((entry) => entry.stage === number)
  const paths = [...new Set([...dirt.changed, ...dirt.untracked, ...dirt.additions, ...dirt.hidden])]
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

/** The files as they lie there: raw bytes, no filters, no line-end conversion; a link is its target. */
const fileEntries = async (
  context: IsolationContext,
  tree: Tree,
  paths: readonly string[],
): Promise<SnapshotEntry[]> => {
  const entries: SnapshotEntry[] = []
  const there: TreePath[] = []
  for (const path of paths) {
    if ((await unlessMissing(lstat(bytesBelow(tree.path, path)))) === undefined) entries.push({ path, blob: undefined })
    else there.push(treePath(rawBytes(path)))
  }
  const hashed = await hashFiles(context.git, tree, there, { durable: true })
  return [...entries, ...hashed.map(({ bytes, mode, sha }) => ({ path: toRaw(bytes), blob: { mode, sha } }))]
}

/** Every object id that git's record or the branch's reflog names: ORIG_HEAD, MERGE_HEAD, a rebase's list, refs/bisect. */
const shasIn = async (tree: Tree, branch: string): Promise<Sha[]> => {
  const found = new Set<Sha>()
  const take = (text: string): void => {
    for (const [word] of text.matchAll(/\b[0-9a-f]{40}(?:[0-9a-f]{24})?\b/g)) {
      if (isSha(word) && !/^0+$/.test(word)) found.add(word)
    }
  }
  const visit = async (directory: string, depth: number): Promise<void> => {
    for (const entry of (await unlessMissing(readdir(directory, { withFileTypes: true }))) ?? []) {
      const path = join(directory, entry.name)
      if (entry.isDirectory() && entry.name !== 'modules' && depth < 6) await visit(path, depth + 1)
      else if (entry.isFile() && !/^(index|sharedindex\.|coppice$|locked$)/.test(entry.name))
        take(await readFile(path, 'latin1'))
    }
  }
  await visit(tree.gitDir, 0)
  take((await unlessMissing(readFile(join(tree.commonDir, 'logs/refs/heads', branch), 'latin1'))) ?? '')
  return [...found]
}

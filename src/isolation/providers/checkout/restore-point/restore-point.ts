/*
 * Restore points. In: a checkout and what it holds. Out: a ref and a directory from which `restore.ts` makes it again,
 * synced to disk before anything is removed.
 */
import { join } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../../../../domain/environment.ts'
import { AppError } from '../../../../domain/errors.ts'
import type { LeftOut, RestoreContents, RestorePoint } from '../../../../domain/removal/restore-point.ts'
import { readHead } from '../../../../git/admin-dir.ts'
import type { Sha } from '../../../../domain/names.ts'
import { borrowsObjects, keepOwnObjects, releaseOwnObjects } from '../../../../git/own-objects.ts'
import { readRef, resolveCommit, updateRefs } from '../../../../git/refs.ts'
import { executableFiles } from '../../../../git/tracked-files.ts'
import { branchSettings } from '../../../../git/upstream.ts'
import { deleteTree } from '../../../../process/files/delete-tree.ts'
import type { IsolationContext } from '../../../context.ts'
import { restoreDirectory } from '../../../restore-points.ts'
import { makePrivateDirectory, syncDirectory, writeDurably } from '../../../durable.ts'
import { type Archived, archiveBesideGit } from './archive.ts'
import { type ToKeep, isDirty, keepObjects } from './keep-objects.ts'
import { keepLargeFiles, withoutLarge } from './large-files.ts'
import { readPermissions } from './permissions.ts'
import { commitTree, writeTree } from '../../../../git/objects.ts'
import { repoOf } from '../../../codebases/repo-of.ts'
import type { HeldForMissing } from '../kind.ts'
import { outermost } from '../look/repositories-inside.ts'
import { author } from './named-by-record.ts'

export type ToSave = ToKeep & {
  /** The operation's id: recovery finds an unfinished point by it. */
  readonly id: string
}

const refOf = (id: string): string => `refs/coppice/restore/${id}`
const day = 24 * 60 * 60 * 1000

/** Everything the environment holds, on disk before this resolves. Nothing is removed without it. */
export const writeRestorePoint = async (context: IsolationContext, given: ToSave): Promise<RestorePoint> => {
  const { environment, codebase, id } = given
  const directory = restoreDirectory(context, id)
  await makePrivateDirectory(directory)
  const largeFiles = await keepLargeFiles(context, given, directory)
  const save = withoutLarge(given, largeFiles)
  const head = await headOf(context, save)
  const { commit, dirty, refused, tags } = await keepObjects(context, save, head.sha)
  await save.checkout.importCommit(context, codebase, save.tree, commit)
  if (borrowsObjects(repoOf(codebase))) await keepBorrowed(context, save, commit)
  await context.failpoint('save.objects')
  const archived = await archive(context, save, directory, refused)
  await context.failpoint('save.archived')
  const settingsOf = (branch: string) => branchSettings(context.git, save.tree, branch)
  const contents: RestoreContents = {
    environment,
    aliases: await context.store.environments.aliases(environment.id),
    head,
    branchSettings: await settingsOf(head.branch ?? environment.branch),
    ...(head.branch !== undefined &&
      head.branch !== environment.branch && { ownBranchSettings: await settingsOf(environment.branch) }),
    tip: save.fate.tip,
    ...(await madeOnOf(context, save)),
    dirty,
    ...(tags !== undefined && { tags }),
    converted: save.dirt?.converted ?? [],
    ...(save.dirt !== undefined && { largeFiles }),
    ...(save.dirt !== undefined && { skippedButThere: save.dirt.skippedButThere ?? [] }),
    ...(await permissionsOf(context, save, archived)),
    ...archived,
    // Without dirt, the directory was missing.
    leftOut: [...archived.leftOut, ...(save.dirt === undefined ? [missingDirectory(environment)] : [])],
  }
  return recordPoint(context, given, { commit, contents })
}

export const missingDirectory = ({ path }: IsolatedEnvironment): LeftOut => ({
  path,
  reason: 'the directory was missing',
})

const madeOnOf = async (
  context: IsolationContext,
  { checkout, codebase, environment }: ToSave,
): Promise<Pick<RestoreContents, 'madeOn'>> => {
  const madeOn = await checkout.madeOn(context, codebase, environment)
  return madeOn === undefined ? {} : { madeOn }
}

/** For a clone whose directory is missing: the commits that the repository holds for it, and their names. */
export const writePointOfHeld = async (
  context: IsolationContext,
  given: Pick<ToSave, 'codebase' | 'environment' | 'id'> & { readonly held: HeldForMissing },
): Promise<RestorePoint> => {
  const { codebase, environment, id, held } = given
  const { git } = context
  const repo = repoOf(codebase)
  const tree = await writeTree(git, repo, [], { durable: true })
  const message = `restore point of ${environment.branch}\n\nEnvironment: ${environment.id}\n`
  const made = { tree, parents: held.commits, message, by: author(context) }
  const commit = await commitTree(git, repo, made, { durable: true })
  const directory = restoreDirectory(context, id)
  await makePrivateDirectory(join(directory, 'admin'))
  if (held.packedRefs !== '') await writeDurably(join(directory, 'admin', 'packed-refs'), held.packedRefs)
  if (borrowsObjects(repo)) await keepBorrowed(context, given, commit)
  const contents: RestoreContents = {
    environment,
    aliases: await context.store.environments.aliases(environment.id),
    head: { branch: environment.branch, sha: held.tip },
    tip: held.tip,
    ...(held.madeOn !== undefined && { madeOn: held.madeOn }),
    dirty: false,
    converted: [],
    modes: {},
    ignored: [],
    nested: [],
    leftOut: [missingDirectory(environment)],
  }
  return recordPoint(context, given, { commit, contents })
}

/** Writes the files and the ref before the row. */
const recordPoint = async (
  context: IsolationContext,
  { environment, codebase, id }: Pick<ToSave, 'codebase' | 'environment' | 'id'>,
  { commit, contents }: Pick<RestorePoint, 'commit' | 'contents'>,
): Promise<RestorePoint> => {
  const directory = restoreDirectory(context, id)
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
  // Readable even without the database.
  await writeDurably(join(directory, 'point.json'), `${JSON.stringify(point, undefined, 2)}\n`)
  await syncDirectory(directory)
  const made = await updateRefs(context.git, repoOf(codebase), [{ update: point.ref, to: commit, from: undefined }], {
    reason: `coppice: restore point of ${environment.branch}`,
    durable: true,
  })
  if (!made.ok) throw new AppError('restore-failed', `the restore point could not be kept: ${made.stderr.trim()}`)
  await context.failpoint('save.ref')
  await context.store.restorePoints.watch(context.host, createdAt)
  await context.store.restorePoints.insert(point)
  await context.failpoint('save.recorded')
  return point
}

/** Whether the repository still holds the point's commit. */
export const isRestorable = async (
  context: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  point: RestorePoint,
): Promise<boolean> => (await readRef(context.git, repoOf(codebase), point.ref))?.sha === point.commit

/** Deletes the point of a removal that didn't happen, or an expired one. Idempotent. */
export const discardRestorePoint = async (
  context: Pick<IsolationContext, 'store' | 'git' | 'home'>,
  codebase: Codebase,
  id: string,
): Promise<void> => {
  const directory = restoreDirectory(context, id)
  const ref = refOf(id)
  const there = await readRef(context.git, repoOf(codebase), ref)
  if (there !== undefined) {
    const gone = await updateRefs(context.git, repoOf(codebase), [{ delete: ref, from: there.sha }], {
      reason: 'coppice: expired',
    })
    if (!gone.ok) throw new AppError('git-failed', `${ref} could not be deleted: ${gone.stderr.trim()}`)
  }
  await releaseOwnObjects(repoOf(codebase), ownerOf(id))
  await deleteTree(directory)
  await context.store.restorePoints.remove(id)
}

const ownerOf = (id: string): string => `coppice restore point ${id}`

/** Everything that the work added. The repository's own branches borrow what the default branch has, too. */
const keepBorrowed = async (
  context: Pick<IsolationContext, 'git' | 'home'>,
  { codebase, environment, id }: Pick<ToSave, 'codebase' | 'environment' | 'id'>,
  commit: Sha,
): Promise<void> => {
  const { git } = context
  const repo = repoOf(codebase)
  const ofRemote = codebase.remote && (await resolveCommit(git, repo, `refs/remotes/${codebase.remote}/HEAD`))
  const except = ofRemote || (await resolveCommit(git, repo, 'HEAD')) || environment.startSha
  const tempPrefix = join(restoreDirectory(context, id), 'objects')
  await keepOwnObjects(git, repo, { commit, except, owner: ownerOf(id), tempPrefix })
}

const archive = async (
  context: Pick<IsolationContext, 'settings'>,
  { tree, dirt }: ToSave,
  to: string,
  refused: readonly string[],
): Promise<Archived> => {
  const untracked = (dirt?.untracked ?? []).filter((path) => path.endsWith('/')).map((path) => path.slice(0, -1))
  const repositories = dirt?.repositories ?? []
  const submodules = [...(dirt?.submodules ?? []).map(({ path }) => path), ...(dirt?.convertedSubmodules ?? [])]
  // Even without own work: its remote-tracking refs may be all that holds what the remote has since deleted.
  const kept = repositories.map(({ path }) => path)
  return archiveBesideGit({
    from: tree.path,
    to,
    record: tree.gitDir,
    // If the tree is clean and has no index flags, the index adds nothing to HEAD.
    withoutIndex: dirt !== undefined && !isDirty(dirt) && dirt.skippedButThere === undefined,
    ignored: dirt?.ignored ?? [],
    special: dirt?.special ?? [],
    refused,
    nested: outermost([...untracked, ...submodules, ...kept]),
    regenerable: context.settings.regenerable,
    limitBytes: context.settings.restoreIgnoredBytes,
  })
}

const permissionsOf = async (
  { git, settings: { regenerable } }: Pick<IsolationContext, 'git' | 'settings'>,
  { tree, dirt }: ToSave,
  { nested }: Archived,
): Promise<Pick<RestoreContents, 'modes' | 'permissions'>> => {
  // The files are missing.
  if (dirt === undefined) return { modes: {} }
  const { modes, ...permissions } = await readPermissions(tree.path, {
    executable: await executableFiles(git, tree),
    whole: nested,
    ignored: dirt.ignored,
    regenerable,
  })
  return { modes, permissions }
}

const headOf = async (
  context: Pick<IsolationContext, 'git'>,
  { tree, dirt }: ToSave,
): Promise<RestoreContents['head']> => {
  const head = await readHead(tree.gitDir)
  const branch = head !== undefined && 'branch' in head ? head.branch : undefined
  const sha = dirt?.headSha ?? (head === undefined ? undefined : await resolveCommit(context.git, tree, 'HEAD'))
  return { branch, sha }
}

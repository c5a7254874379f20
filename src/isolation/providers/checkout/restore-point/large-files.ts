import { chmod, link, lstat, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../../../../domain/error-code.ts'
import { unlessMissing } from '../../../../domain/missing.ts'
import { toSha } from '../../../../domain/names.ts'
import { bytesBelow, shownPath } from '../../../../domain/text/raw-path.ts'
import type { LargeFile, LeftOut, RestorePoint } from '../../../../domain/removal/restore-point.ts'
import { catFiles } from '../../../../git/blobs.ts'
import { blobsInIndex, type PrivateIndex } from '../../../../git/converted.ts'
import type { Tree } from '../../../../git/door.ts'
import { copyUntrusted } from '../../../../process/files/read-untrusted.ts'
import { syncPath } from '../../../../process/files/sync-path.ts'
import type { IsolationContext } from '../../../context.ts'
import { makePrivateDirectory } from '../../../durable.ts'
import type { ToKeep } from './keep-objects.ts'
import { sameBytes } from '../provision/same-content.ts'

/*
 * Git holds a pointer to a Git LFS file; the content is in LFS's own store, which `git lfs prune` clears regardless of
 * restore points. A checkout fills in the file only if the user has set up LFS for it. So a restore point has a link to
 * the content, which takes no space, and a restore writes the file itself.
 */

/** Files that a checkout may write differently but whose exact bytes LFS has. */
export const keepLargeFiles = async (
  { git }: Pick<IsolationContext, 'git'>,
  { tree, dirt }: ToKeep,
  directory: string,
): Promise<LargeFile[]> => {
  const kept: LargeFile[] = []
  const pointers = await pointersOf(git, tree, dirt?.converted ?? [])
  if (pointers.length > 0) await makePrivateDirectory(join(directory, 'large'))
  for (const { path, oid, size } of pointers) {
    const content = await storedContent(tree, { oid, size })
    if (content === undefined) continue
    const to = join(directory, 'large', oid)
    await linkOrCopy(content, to)
    if (await sameBytes(to, bytesBelow(tree.path, path))) kept.push({ path, oid })
  }
  return kept
}

/** Which of these files (raw paths) LFS has byte for byte. */
export const filesInLargeStore = async (
  git: IsolationContext['git'],
  tree: Tree,
  paths: readonly string[],
  index: PrivateIndex,
): Promise<ReadonlySet<string>> => {
  const found = new Set<string>()
  for (const pointer of await pointersOf(git, tree, paths, index)) {
    const content = await storedContent(tree, pointer)
    if (content !== undefined && (await sameBytes(content, bytesBelow(tree.path, pointer.path))))
      found.add(pointer.path)
  }
  return found
}

/** Undefined if LFS doesn't have all of it. */
const storedContent = async (
  { commonDir }: Tree,
  { oid, size }: Pick<Pointer, 'oid' | 'size'>,
): Promise<string | undefined> => {
  const content = join(commonDir, 'lfs/objects', oid.slice(0, 2), oid.slice(2, 4), oid)
  const found = await unlessMissing(lstat(content))
  return found?.isFile() === true && found.size === size ? content : undefined
}

/** The rest is kept as ordinary files. */
export const withoutLarge = <T extends ToKeep>(save: T, largeFiles: readonly LargeFile[]): T => {
  if (save.dirt === undefined || largeFiles.length === 0) return save
  const large = new Set(largeFiles.map(({ path }) => path))
  return { ...save, dirt: { ...save.dirt, converted: save.dirt.converted.filter((path) => !large.has(path)) } }
}

type Pointer = LargeFile & { readonly size: number }

/** A pointer has about 130 bytes. One with extensions, which convert the content, is longer and not supported. */
const pointersOf = async (
  git: IsolationContext['git'],
  tree: Tree,
  paths: readonly string[],
  index: PrivateIndex = {},
): Promise<readonly Pointer[]> => {
  if ((await unlessMissing(lstat(join(tree.commonDir, 'lfs/objects')))) === undefined) return []
  const found: Pointer[] = []
  const byBlob = Map.groupBy(
    await blobsInIndex(git, tree, paths, { maxBytes: maxPointerBytes, ...index }),
    ({ sha }) => sha,
  )
  await catFiles(git, tree, [...byBlob.keys()], (sha, content) => {
    const [, oid, size] = pointer.exec(content.toString('latin1')) ?? []
    if (oid === undefined) return
    for (const { path } of byBlob.get(toSha(sha)) ?? []) found.push({ path, oid, size: Number(size) })
  })
  return found
}

const maxPointerBytes = 200
const pointer = /^version https:\/\/git-lfs\.github\.com\/spec\/v1\noid sha256:([0-9a-f]{64})\nsize (\d+)\n$/

/** LFS never rewrites a file in its store. */
const linkOrCopy = async (from: string, to: string): Promise<void> => {
  try {
    await link(from, to)
  } catch (error) {
    // Two files with the same content.
    if (hasCode(error, 'EEXIST')) return
    await copyUntrusted(from, to)
  }
  await syncPath(to)
}

/** After the checkout, which wrote either the file or its pointer. */
export const restoreLargeFiles = async (
  tree: Tree,
  directory: string,
  { contents }: RestorePoint,
  leftOut: LeftOut[],
): Promise<void> => {
  for (const { path, oid } of contents.largeFiles ?? []) {
    const target = bytesBelow(tree.path, path)
    const content = join(directory, 'large', oid)
    if ((await unlessMissing(lstat(content))) === undefined) {
      leftOut.push({ path: shownPath(path), reason: 'its content is gone; try `git lfs pull`' })
      continue
    }
    const laid = await unlessMissing(lstat(target))
    if (laid?.isFile() !== true || (await sameBytes(content, target))) continue
    await rm(target)
    await copyUntrusted(content, target)
    await chmod(target, laid.mode & 0o777)
  }
}

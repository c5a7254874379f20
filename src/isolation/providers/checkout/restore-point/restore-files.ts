import { chmod, lstat, mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { unlessMissing } from '../../../../domain/missing.ts'
import { type Sha, toSha } from '../../../../domain/names.ts'
import { bytesBelow, shownPath, toRaw } from '../../../../domain/text/raw-path.ts'
import type { LeftOut, RestorePoint } from '../../../../domain/removal/restore-point.ts'
import { catFiles } from '../../../../git/blobs.ts'
import type { Tree } from '../../../../git/door.ts'
import { type ListedEntry, readTree } from '../../../../git/objects.ts'
import { deleteTree } from '../../../../process/files/delete-tree.ts'
import type { IsolationContext } from '../../../context.ts'
import { copyTree } from './archive.ts'

/**
 * Writes or deletes, byte for byte, whatever differs between the checkout (`head`) and the snapshot's `work/`. A file
 * whose content the repository has lost is named; the others are restored.
 */
export const restoreFiles = async (
  context: Pick<IsolationContext, 'git'>,
  tree: Tree,
  point: RestorePoint,
  head: Sha | undefined,
  leftOut: LeftOut[],
): Promise<void> => {
  const converted = new Set(point.contents.converted)
  const work = new Map<string, ListedEntry>()
  for (const entry of await readTree(context.git, tree, point.commit)) {
    const path = toRaw(entry.bytes)
    if (path.startsWith('work/')) work.set(path.slice('work/'.length), entry)
  }
  const before = new Map(
    head === undefined ? [] : (await readTree(context.git, tree, head)).map((entry) => [toRaw(entry.bytes), entry]),
  )
  for (const [path, { mode }] of before) {
    if (!work.has(path) && mode !== '160000') await rm(bytesBelow(tree.path, path), { force: true })
  }
  const changed = [...work].filter(([path, { sha, mode }]) => {
    const old = before.get(path)
    // A converted file's bytes on disk differ from the commit's, even if the commit has these.
    return mode !== '160000' && (old?.sha !== sha || old.mode !== mode || converted.has(path))
  })
  const wanted = Map.groupBy(changed, ([, { sha }]) => sha)
  const missing = await catFiles(context.git, tree, [...wanted.keys()], async (sha, bytes) => {
    for (const [path, { mode }] of wanted.get(toSha(sha)) ?? []) {
      await layFile(tree, path, mode, bytes, point.contents.modes[path])
    }
  })
  for (const [path] of missing.flatMap((sha) => wanted.get(toSha(sha)) ?? [])) {
    leftOut.push({ path: shownPath(path), reason: 'its content is missing from the repository' })
  }
}

const layFile = async (
  tree: Tree,
  path: string,
  mode: string,
  bytes: Buffer,
  permissions: number | undefined,
): Promise<void> => {
  const target = bytesBelow(tree.path, path)
  await mkdir(bytesBelow(tree.path, parentOf(path)), { recursive: true })
  await deleteTree(target)
  if (mode === '120000') await symlink(bytes, target)
  else {
    await writeFile(target, bytes, { mode: 0o600, flag: 'wx' })
    await chmod(target, permissions ?? (mode === '100755' ? 0o755 : 0o644))
  }
}

export const parentOf = (path: string): string => (path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '')

/** Copies saved files into the tree, never over existing ones, and names those missing from the restore point. */
export const restoreIgnored = async (
  from: string,
  tree: Tree,
  expected: readonly string[],
  leftOut: LeftOut[],
): Promise<void> => {
  await mergeTree(from, tree.path, leftOut)
  for (const path of expected) {
    if ((await unlessMissing(lstat(bytesBelow(from, path)))) !== undefined) continue
    leftOut.push({ path: shownPath(path), reason: 'missing from the restore point' })
  }
}

const mergeTree = async (from: string, to: string, leftOut: LeftOut[], path = ''): Promise<void> => {
  const here = path === '' ? Buffer.from(from) : bytesBelow(from, path)
  for (const entry of await readdir(here, { withFileTypes: true, encoding: 'buffer' })) {
    const inner = path === '' ? toRaw(entry.name) : `${path}/${toRaw(entry.name)}`
    if (entry.isDirectory()) {
      await mkdir(bytesBelow(to, inner), { recursive: true })
      await mergeTree(from, to, leftOut, inner)
    } else if ((await unlessMissing(lstat(bytesBelow(to, inner)))) === undefined) {
      await copyTree(from, to, inner, leftOut)
    }
  }
}

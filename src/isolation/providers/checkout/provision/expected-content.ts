import { lstat, readdir, readlink } from 'node:fs/promises'
import { readRestoreData } from '../../../../domain/journal-data.ts'
import { join } from 'node:path'
import type { Sha } from '../../../../domain/names.ts'
import { bytesBelow, toRaw } from '../../../../domain/raw-path.ts'
import type { RestorePoint } from '../../../../domain/removal/restore-point.ts'
import { trimEndOf } from '../../../../domain/trim-end.ts'
import { catFiles } from '../../../../git/blobs.ts'
import type { Repo, Tree } from '../../../../git/door.ts'
import { readTree } from '../../../../git/objects.ts'
import { readUntrusted } from '../../../../process/files/read-untrusted.ts'
import type { JournalEntry } from '../../../../store/store.ts'
import type { IsolationContext } from '../../../context.ts'
import { unlessMissing } from '../../../../domain/missing.ts'
import { restoreDirectory } from '../../../restore-points.ts'

/** What an interrupted creation or restore itself was laying down; anything else in the tree is somebody's work. */
export type ExpectedContent = {
  /** Is the file (raw path) as laid, not there yet, or the beginning of it: what was being written at the crash? */
  readonly has: (path: string) => Promise<boolean>
  /** Is this what the start commit or the restore point has at the path (raw)? */
  readonly staged: (path: string, sha: Sha) => boolean
  /** Commits that were there before. */
  readonly commits: readonly Sha[]
  /** The half-done operations in the tree were brought back, not begun. */
  readonly halfDone: boolean
}

export const expectedContent = async (
  context: Pick<IsolationContext, 'store' | 'git' | 'home'>,
  tree: Tree,
  entry: JournalEntry,
  start: Sha,
): Promise<ExpectedContent> => {
  const pointId = entry.kind === 'restore' ? readRestoreData(entry).pointId : undefined
  const point = pointId === undefined ? undefined : await context.store.restorePoints.get(pointId)
  // Not through the tree's own record: that may be half written.
  const repo = { commonDir: tree.commonDir }
  const sources = await blobsOf(context, repo, start, point)
  const beside = point && restoreDirectory(context, point.id)
  const nested = (point?.contents.nested ?? []).map((path) => `${path}/`)
  const has = async (given: string): Promise<boolean> => {
    // A nested repository is brought back whole, and what lies beside git is still there whatever happens here.
    if (nested.some((one) => given === one || given.startsWith(one))) return true
    const path = trimEndOf(given, '/')
    const here = await contentOf(bytesBelow(tree.path, path))
    if (here === 'absent') return true
    if (here === 'directory') {
      for (const name of await readdir(bytesBelow(tree.path, path), { encoding: 'buffer' })) {
        if (!(await has(`${path}/${toRaw(name)}`))) return false
      }
      return true
    }
    for (const sha of sources.get(path) ?? []) {
      const source = await blob(context, repo, sha)
      if (source !== undefined && startsWith(source, here)) return true
    }
    const large = point?.contents.largeFiles?.find((file) => file.path === path)
    if (beside !== undefined && large !== undefined) {
      const content = await contentOf(Buffer.from(join(beside, 'large', large.oid)))
      if (Buffer.isBuffer(content) && startsWith(content, here)) return true
    }
    const kept = beside && (await contentOf(bytesBelow(join(beside, 'ignored'), path)))
    return Buffer.isBuffer(kept) && startsWith(kept, here)
  }
  const commits = [start, ...(point === undefined ? [] : [point.commit, ...shasOf(point)])]
  const staged = (path: string, sha: Sha): boolean => sources.get(path)?.includes(sha) === true
  return { has, staged, commits, halfDone: point !== undefined }
}

const shasOf = ({ contents: { head, tip } }: RestorePoint): Sha[] => [head.sha, tip].filter((sha) => sha !== undefined)

/** For each path the blobs it may rightly hold: the start commit's, and the restore point's `work/`. */
const blobsOf = async (
  context: Pick<IsolationContext, 'git'>,
  repo: Repo,
  start: Sha,
  point: RestorePoint | undefined,
): Promise<ReadonlyMap<string, readonly Sha[]>> => {
  const found = new Map<string, Sha[]>()
  const add = (path: string, sha: Sha): void => void found.set(path, [...(found.get(path) ?? []), sha])
  for (const entry of await readTree(context.git, repo, start)) add(toRaw(entry.bytes), entry.sha)
  if (point?.contents.dirty !== true) return found
  for (const entry of await readTree(context.git, repo, point.commit)) {
    const path = toRaw(entry.bytes)
    const [, inside] = /^(?:work|index|stage-[123])\/(.+)$/s.exec(path) ?? []
    if (inside !== undefined) add(inside, entry.sha)
  }
  return found
}

/** Compared in memory with what git has; a larger file is not ours to judge, and is refused. */
const maxBlobBytes = 512 * 1024 * 1024

const contentOf = async (path: Buffer): Promise<Buffer | 'absent' | 'directory'> => {
  const found = await unlessMissing(lstat(path))
  if (found === undefined) return 'absent'
  if (found.isDirectory()) return 'directory'
  if (found.isSymbolicLink()) return readlink(path, { encoding: 'buffer' })
  return (await readUntrusted(path, { maxBytes: maxBlobBytes })) ?? 'absent'
}

const blob = async (context: Pick<IsolationContext, 'git'>, repo: Repo, sha: Sha): Promise<Buffer | undefined> => {
  let found: Buffer | undefined
  await catFiles(context.git, repo, [sha], (_name, bytes) => {
    found = bytes
  })
  return found
}

const startsWith = (whole: Buffer, part: Buffer): boolean =>
  part.length <= whole.length && whole.subarray(0, part.length).equals(part)

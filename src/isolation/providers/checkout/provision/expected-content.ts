import { lstat, readdir, readlink } from 'node:fs/promises'
import { readRestoreData } from '../../../../domain/journal-data.ts'
import { join } from 'node:path'
import type { Sha } from '../../../../domain/names.ts'
import { bytesBelow, toRaw } from '../../../../domain/text/raw-path.ts'
import type { RestorePoint } from '../../../../domain/removal/restore-point.ts'
import { trimEndOf } from '../../../../domain/text/trim-end.ts'
import { catFiles } from '../../../../git/blobs.ts'
import type { Repo, Tree } from '../../../../git/door.ts'
import { skippedFiles } from '../../../../git/hidden.ts'
import { type ListedEntry, readTree } from '../../../../git/objects.ts'
import type { SnapshotEntry } from '../../../../git/snapshot.ts'
import { readUntrusted } from '../../../../process/files/read-untrusted.ts'
import type { JournalEntry } from '../../../../store/store.ts'
import type { IsolationContext } from '../../../context.ts'
import { unlessMissing } from '../../../../domain/missing.ts'
import { restoreDirectory } from '../../../restore-points.ts'
import { hasLaidAll } from '../creation-record.ts'

/** What an interrupted creation or restore was writing; anything else in the tree is someone's work. */
export type ExpectedContent = {
  /** All of it was written, so a file that is now missing, shorter or executable was changed by someone. */
  readonly isComplete: boolean
  /** Whether the file (raw path) is as written. If writing was interrupted, it may also be missing or truncated. */
  readonly has: (path: string) => Promise<boolean>
  /** Whether the start commit or the restore point has this in the index. */
  readonly staged: (change: SnapshotEntry) => boolean
  /** Commits that existed before. */
  readonly commits: readonly Sha[]
  /** The half-done operations in the tree were restored, not started. */
  readonly halfDone: boolean
}

export const expectedContent = async (
  context: Pick<IsolationContext, 'store' | 'git' | 'home'>,
  tree: Tree,
  entry: JournalEntry,
  start: Sha,
  { isWhole }: { readonly isWhole: boolean },
): Promise<ExpectedContent> => {
  const pointId = entry.kind === 'restore' ? readRestoreData(entry).pointId : undefined
  const point = pointId === undefined ? undefined : await context.store.restorePoints.get(pointId)
  // Not from the tree's own record, which may be half written.
  const repo = { commonDir: tree.commonDir }
  const { atStart, work, index } = await laidDown(context, repo, start, point)
  const isComplete = isWhole && hasLaidAll(entry) && (pointId === undefined || point !== undefined)
  const skipped = new Set(isComplete ? (await skippedFiles(context.git, tree)).map(({ bytes }) => toRaw(bytes)) : [])
  const isSame = isComplete ? equals : startsWith
  // A restore writes files over a checkout of the start commit.
  const laid = isComplete ? [work, index] : [work, index, atStart]
  const sources = (path: string): Sha[] => laid.flatMap((one) => one.get(path) ?? []).map(({ sha }) => sha)
  const beside = point && restoreDirectory(context, point.id)
  const nested = (point?.contents.nested ?? []).map((path) => `${path}/`)
  const has = async (given: string): Promise<boolean> => {
    // A nested repository is restored whole, and the restore point still has what it keeps outside git.
    if (nested.some((one) => given === one || given.startsWith(one))) return true
    const path = trimEndOf(given, '/')
    const here = await contentOf(bytesBelow(tree.path, path))
    if (here === 'absent') return !isComplete || skipped.has(path) || work.get(path)?.every(isGitlink) !== false
    if (here === 'directory') {
      for (const name of await readdir(bytesBelow(tree.path, path), { encoding: 'buffer' })) {
        if (!(await has(`${path}/${toRaw(name)}`))) return false
      }
      return true
    }
    if (here === 'too-large') return false
    if (isComplete && !(await hasMode(bytesBelow(tree.path, path), work.get(path)?.[0]))) return false
    for (const sha of sources(path)) {
      const source = await blob(context, repo, sha)
      if (source !== undefined && isSame(source, here)) return true
    }
    const large = point?.contents.largeFiles?.find((file) => file.path === path)
    if (beside !== undefined && large !== undefined) {
      const content = await contentOf(Buffer.from(join(beside, 'large', large.oid)))
      if (Buffer.isBuffer(content) && isSame(content, here)) return true
    }
    const kept = beside && (await contentOf(bytesBelow(join(beside, 'ignored'), path)))
    return Buffer.isBuffer(kept) && isSame(kept, here)
  }
  const commits = [start, ...(point === undefined ? [] : [point.commit, ...shasOf(point)])]
  const staged = ({ path, blob }: SnapshotEntry): boolean => {
    if (!isComplete) return blob === undefined || sources(path).includes(blob.sha)
    const expected = index.get(path) ?? []
    if (blob === undefined) return expected.length === 0
    return expected.some(({ sha, mode }) => sha === blob.sha && mode === blob.mode)
  }
  return { isComplete, has, staged, commits, halfDone: point !== undefined }
}

const shasOf = ({ contents: { head, tip } }: RestorePoint): Sha[] => [head.sha, tip].filter((sha) => sha !== undefined)

type Laid = ReadonlyMap<string, readonly ListedEntry[]>

/** What each path may hold, as a file and in the index, according to the restore point or start commit. */
const laidDown = async (
  context: Pick<IsolationContext, 'git'>,
  repo: Repo,
  start: Sha,
  point: RestorePoint | undefined,
): Promise<{ readonly atStart: Laid; readonly work: Laid; readonly index: Laid }> => {
  const atStart = byPath(await readTree(context.git, repo, start))
  if (point === undefined) return { atStart, work: atStart, index: atStart }
  const { dirty, head } = point.contents
  if (!dirty) {
    const atHead = head.sha === undefined ? atStart : byPath(await readTree(context.git, repo, head.sha))
    return { atStart, work: atHead, index: atHead }
  }
  const work = new Map<string, ListedEntry[]>()
  const index = new Map<string, ListedEntry[]>()
  for (const entry of await readTree(context.git, repo, point.commit)) {
    const [, part, path] = /^(work|index|stage-[123])\/(.+)$/s.exec(toRaw(entry.bytes)) ?? []
    const laid = part === 'work' ? work : index
    if (path !== undefined) laid.set(path, [...(laid.get(path) ?? []), entry])
  }
  return { atStart, work, index }
}

const byPath = (entries: readonly ListedEntry[]): Laid => Map.groupBy(entries, ({ bytes }) => toRaw(bytes))

const isGitlink = ({ mode }: Pick<ListedEntry, 'mode'>): boolean => mode === '160000'

/** Whether a file is of the expected kind, as far as git records it: link, file or executable. */
export const hasMode = async (path: Buffer, laid: Pick<ListedEntry, 'mode'> | undefined): Promise<boolean> => {
  const found = await unlessMissing(lstat(path))
  if (found === undefined || laid === undefined || isGitlink(laid)) return true
  if (laid.mode === '120000') return found.isSymbolicLink()
  return found.isFile() && ((found.mode & 0o100) !== 0) === (laid.mode === '100755')
}

/** Compared in memory with git's copy; a larger file never counts as ours. */
const maxBlobBytes = 512 * 1024 * 1024

const contentOf = async (path: Buffer): Promise<Buffer | 'absent' | 'directory' | 'too-large'> => {
  const found = await unlessMissing(lstat(path))
  if (found === undefined) return 'absent'
  if (found.isDirectory()) return 'directory'
  if (found.isSymbolicLink()) return readlink(path, { encoding: 'buffer' })
  if (found.isFile() && found.size > maxBlobBytes) return 'too-large'
  return (await readUntrusted(path, { maxBytes: maxBlobBytes })) ?? 'absent'
}

const blob = async (context: Pick<IsolationContext, 'git'>, repo: Repo, sha: Sha): Promise<Buffer | undefined> => {
  let found: Buffer | undefined
  await catFiles(context.git, repo, [sha], (_name, bytes) => {
    found = bytes
  })
  return found
}

const equals = (whole: Buffer, part: Buffer): boolean => whole.equals(part)

const startsWith = (whole: Buffer, part: Buffer): boolean =>
  part.length <= whole.length && whole.subarray(0, part.length).equals(part)

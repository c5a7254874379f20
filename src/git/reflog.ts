import { createHash } from 'node:crypto'
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { unlessMissing } from '../domain/missing.ts'
import { isSha, type Sha } from '../domain/names.ts'
import { openUntrusted, readUntrusted } from '../process/files/read-untrusted.ts'
import type { Repo } from './door.ts'
import { maxLogBytes } from './file-limits.ts'

/** One move of a ref. `from` is undefined where it was created. */
export type ReflogEntry = { readonly from: Sha | undefined; readonly to: Sha | undefined; readonly message: string }

/** The branch's reflog, oldest first; empty when there is none. Read from its file, without starting git. */
export const branchReflog = async (repo: Repo, branch: string): Promise<ReflogEntry[]> =>
  entriesIn(await readBranchReflog(repo, branch))

/** The last move of a ref, by its full name. Reads only the end of the file: an agent can make it large. */
export const lastReflogEntry = async ({ commonDir }: Repo, ref: string): Promise<ReflogEntry | undefined> => {
  return entriesIn(await endOf(join(commonDir, 'logs', ref))).at(-1)
}

const endOf = async (path: string): Promise<Buffer | undefined> => {
  if ((await unlessMissing(lstat(path)))?.isFile() !== true) return undefined
  const file = await openUntrusted(path)
  try {
    const size = (await file?.stat())?.size ?? 0
    const end = Buffer.alloc(Math.min(size, 64 * 1024))
    await file?.read(end, 0, end.length, size - end.length)
    return end
  } finally {
    await file?.close()
  }
}

/** When HEAD last moved in a worktree, by its reflog's own time: a copied file is younger. */
export const headMovedAt = async (gitDir: string): Promise<number | undefined> => {
  const end = await endOf(join(gitDir, 'logs', 'HEAD'))
  // `<from> <to> <name> <mail> <seconds> <zone>`, then a tab and the message. A name can contain anything but `>`.
  const seconds = /> (\d{1,12}) [+-]\d{4}(?:\t|$)/.exec(end?.toString('utf8').trimEnd().split('\n').at(-1) ?? '')?.[1]
  return seconds === undefined ? undefined : Number(seconds) * 1000
}

/** HEAD's reflog: a worktree's by its record, the main checkout's by the repository. */
export const headReflog = async (gitDir: string): Promise<ReflogEntry[]> => entriesIn(await readHeadReflog(gitDir))

const readHeadReflog = (gitDir: string): Promise<Buffer | undefined> =>
  readUntrusted(join(gitDir, 'logs', 'HEAD'), { maxBytes: maxLogBytes })

/** HEAD's reflog as it is now, as `<length>:<sha256>`; undefined when there is none. */
export const markHeadReflog = async (gitDir: string): Promise<string | undefined> => {
  const log = await comparable(gitDir)
  return log && `${log.length}:${digestOf(log)}`
}

/**
 * HEAD's moves since `markHeadReflog`. Whoever wrote the log before may have left half a line at its end, which git
 * continues; so this goes by bytes, not by lines. Undefined if the log doesn't begin as it did then: git drops old
 * entries, and anybody can rewrite it.
 */
export const headMovesSince = async (gitDir: string, mark: string): Promise<ReflogEntry[] | undefined> => {
  const [, length, digest] = /^(\d+):([0-9a-f]{64})$/.exec(mark) ?? []
  const log = await comparable(gitDir)
  if (log === undefined || length === undefined || log.length < Number(length)) return undefined
  return digestOf(log.subarray(0, Number(length))) === digest ? entriesIn(log.subarray(Number(length))) : undefined
}

/** Where a message is empty, `git gc` adds the tab that `git worktree add` leaves out. */
const comparable = async (gitDir: string): Promise<Buffer | undefined> => {
  const log = await readHeadReflog(gitDir)
  return log && Buffer.from(log.toString('latin1').replaceAll('\t\n', '\n'), 'latin1')
}

const digestOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

const entriesIn = (log: Buffer | undefined): ReflogEntry[] => {
  const lines = (log?.toString('utf8') ?? '').split('\n')
  return lines.filter((line) => line !== '').map(parse)
}

/** The raw reflog; undefined when there is none. */
export const readBranchReflog = (repo: Repo, branch: string): Promise<Buffer | undefined> =>
  readLog(repo, `refs/heads/${branch}`)

const readLog = async ({ commonDir }: Repo, ref: string): Promise<Buffer | undefined> => {
  const file = join(commonDir, 'logs', ref)
  // A directory holds the reflogs of branches below that name, so the branch itself doesn't exist.
  if ((await unlessMissing(lstat(file)))?.isDirectory() === true) return undefined
  return readUntrusted(file, { maxBytes: maxLogBytes })
}

/** Whether the reflog shows that the branch once had this name, even after several renames. */
export const wasRenamedFrom = (entries: readonly ReflogEntry[], from: string, to: string): boolean => {
  let name = to
  for (const { message } of entries.toReversed()) {
    const [, before, after] = /^Branch: renamed refs\/heads\/(\S+) to refs\/heads\/(\S+)$/.exec(message) ?? []
    if (before !== undefined && after === name) name = before
    if (name === from) return true
  }
  return false
}

const parse = (line: string): ReflogEntry => {
  const [from = '', to = ''] = line.split(' ', 2)
  const tab = line.indexOf('\t')
  return { from: commit(from), to: commit(to), message: tab < 0 ? '' : line.slice(tab + 1) }
}

const commit = (text: string): Sha | undefined => (isSha(text) && !/^0+$/.test(text) ? text : undefined)

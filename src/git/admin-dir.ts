import { existsSync, linkSync, lstatSync, readlinkSync, realpathSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { hasCode } from '../domain/error-code.ts'
import { AppError } from '../domain/errors.ts'
import { unlessMissing, unlessMissingSync } from '../domain/missing.ts'
import { isSha, type Sha } from '../domain/names.ts'
import { linkedGitDirectory, maxLineBytes } from '../domain/git-link.ts'
import { shownPath } from '../domain/raw-path.ts'
import { listDirectory } from '../process/files/list-directory.ts'
import { readUntrustedTextSync } from '../process/files/read-untrusted.ts'
import { replaceFileSync, writeNewFileSync } from '../process/files/replace-file.ts'
import { createTimeSlice } from '../process/time-slice.ts'
import { maxConfigBytes, maxWorktreeRecords } from './file-limits.ts'
import { remedy, shell } from '../domain/remedy.ts'

/*
 * Git's own records, read as files: no subprocess. Promises outside like every question about a repository, but
 * synchronous inside: a few small files take microseconds, the way through the thread pool ten times as long.
 * What is not there is undefined; what cannot be read throws, because *cannot tell* is not *absent*.
 */

export type Head = { readonly branch: string } | { readonly sha: Sha }

export type AdminDir = {
  /** `<common>/worktrees/<name>` */
  readonly name: string
  readonly dir: string
  /** Where git thinks the files are; the directory may be gone. */
  readonly worktreePath: string | undefined
  readonly head: Head | undefined
  readonly lockReason: string | undefined
  /** Branches that a rebase or bisect here will come back to: as taken as the one that is checked out. */
  readonly busyBranches: readonly string[]
}

export const readAdminDirs = (commonDir: string): Promise<AdminDir[]> => readEach(commonDir, readOne)

/** Where git's records say its worktrees are: one small file each, where all of a record is ten times as much. */
export const worktreePaths = (commonDir: string): Promise<string[]> => readEach(commonDir, worktreePathSync)

/** Synchronous per record, with turns in between: an agent can make thousands of them. */
const readEach = async <T>(commonDir: string, read: (dir: string) => T | undefined): Promise<T[]> => {
  const root = join(commonDir, 'worktrees')
  const slice = createTimeSlice({ ms: maxReadMs, error: () => tookTooLong(root) })
  const listing = listDirectory(Buffer.from(root), { slice, maxEntries: maxWorktreeRecords })
  const names = ((await unlessMissing(listing)) ?? []).map(({ name }) => shownPath(name))
  const found: T[] = []
  for (const name of names.sort()) {
    if (slice.isOver()) await slice.next()
    const record = read(join(root, name))
    if (record !== undefined) found.push(record)
  }
  return found
}

/** A record takes a fraction of a millisecond, unless its files are megabytes. */
const maxReadMs = 10_000

const tookTooLong = (root: string): AppError =>
  new AppError('unusable-file', `${root} could not be read within ${maxReadMs / 1000} s`, {
    remedy: remedy`remove the records of worktrees that no longer exist (${shell('git worktree prune')}), and try again`,
  })

/** Where git thinks the files of one record are. */
export const worktreePathSync = (dir: string): string | undefined => {
  const link = readLine(join(dir, 'gitdir'))
  return link === undefined || link === '' ? undefined : dirname(resolve(dir, link))
}

/** undefined when there is no such record (or it is not a directory). */
export const readAdminDir = async (dir: string): Promise<AdminDir | undefined> => readOne(dir)

const readOne = (dir: string): AdminDir | undefined => {
  if (unlessMissingSync(() => statSync(dir))?.isDirectory() !== true) return undefined
  return {
    name: basename(dir),
    dir,
    worktreePath: worktreePathSync(dir),
    head: headOf(dir),
    lockReason: readText(join(dir, 'locked')),
    busyBranches: busyBranches(dir),
  }
}

/** HEAD of the canonical checkout, also when the repository is bare and nothing is checked out. */
export const mainHead = async (commonDir: string): Promise<Head | undefined> => headOf(commonDir)

/** HEAD of a worktree or repository; undefined when it is missing or makes no sense. */
export const readHead = async (gitDir: string): Promise<Head | undefined> => headOf(gitDir)

const headOf = (gitDir: string): Head | undefined => {
  const text = headText(gitDir)
  if (text === undefined) return undefined
  const ref = /^ref:\s*refs\/heads\/(.+)$/.exec(text)?.[1]
  if (ref !== undefined) return { branch: ref }
  return isSha(text) ? { sha: text } : undefined
}

/** Git once made HEAD a link to `refs/heads/…`, and still reads one. The link's target says it all: it is not followed. */
const headText = (gitDir: string): string | undefined => {
  const path = join(gitDir, 'HEAD')
  try {
    return readLine(path)
  } catch (error) {
    const target = lstatSync(path).isSymbolicLink() ? readlinkSync(path) : ''
    if (target.startsWith('refs/heads/')) return `ref: ${target}`
    throw error
  }
}

/** The record a worktree's `.git` file points to; undefined when there is no such file or no such record. */
export const readWorktreeLink = async (path: string): Promise<string | undefined> => readWorktreeLinkSync(path)

export const readWorktreeLinkSync = (path: string): string | undefined => {
  const dotGit = join(path, '.git')
  if (unlessMissingSync(() => statSync(dotGit))?.isFile() !== true) return undefined
  const target = linkedGitDirectory(readLine(dotGit))
  return target === undefined ? undefined : unlessMissingSync(() => realpathSync(resolve(path, target)))
}

/** The worktree (or main checkout) that has the branch, so that git would refuse it to another one. */
export const branchCheckedOut = async (commonDir: string, branch: string): Promise<string | undefined> => {
  if (!isBare(commonDir) && holds(headOf(commonDir), busyBranches(commonDir), branch)) {
    return basename(commonDir) === '.git' ? dirname(commonDir) : commonDir
  }
  const holder = (await readAdminDirs(commonDir)).find((admin) => holds(admin.head, admin.busyBranches, branch))
  return holder && (holder.worktreePath ?? holder.dir)
}

const holds = (head: Head | undefined, busy: readonly string[], branch: string): boolean =>
  (head !== undefined && 'branch' in head && head.branch === branch) || busy.includes(branch)

/** A bare repository's HEAD names a branch that nobody has checked out. Unclear counts as not bare. */
const isBare = (commonDir: string): boolean => {
  const text = readUntrustedTextSync(join(commonDir, 'config'), { maxBytes: maxConfigBytes })
  // No `\s` across lines: on a megabyte of newlines each of them would be tried as a beginning.
  const core = /^[ \t]*\[core\]([^[]*)/im.exec(text ?? '')?.[1]
  return core !== undefined && /^[ \t]*bare[ \t]*=[ \t]*true[ \t\r]*$/im.test(core)
}

const busyBranches = (gitDir: string): string[] => {
  const heads = ['rebase-merge', 'rebase-apply'].map((dir) => readText(join(gitDir, dir, 'head-name')))
  // `rebase --update-refs` moves these too: ref, old value, new value, and again.
  const updated = (readText(join(gitDir, 'rebase-merge', 'update-refs')) ?? '').split('\n')
  const bisect = readText(join(gitDir, 'BISECT_START'))
  const refs = [...heads, ...updated].flatMap((ref) => /^refs\/heads\/(.+)$/.exec(ref ?? '')?.[1] ?? [])
  return [...new Set([...refs, ...(bisect === undefined || isSha(bisect) ? [] : [bisect])])]
}

export type HalfDone = 'merge' | 'rebase' | 'cherry-pick' | 'revert' | 'am' | 'bisect' | 'notes merge'

/** What was begun in a worktree and neither finished nor given up. */
export const halfDone = (gitDir: string): HalfDone[] => {
  const has = (...parts: string[]): boolean => unlessMissingSync(() => statSync(join(gitDir, ...parts))) !== undefined
  const applying = has('rebase-apply', 'applying')
  // Between two commits of a sequence there is no CHERRY_PICK_HEAD, only the list of what is left.
  const todo = readText(join(gitDir, 'sequencer', 'todo')) ?? ''
  const found: [HalfDone, boolean][] = [
    ['merge', has('MERGE_HEAD')],
    ['rebase', has('rebase-merge') || (has('rebase-apply') && !applying)],
    ['cherry-pick', has('CHERRY_PICK_HEAD') || /^p(?:ick)? /.test(todo)],
    ['revert', has('REVERT_HEAD') || todo.startsWith('revert ')],
    ['am', applying],
    ['bisect', has('BISECT_LOG') || has('BISECT_START')],
    ['notes merge', has('NOTES_MERGE_PARTIAL') || has('NOTES_MERGE_REF')],
  ]
  return found.flatMap(([name, there]) => (there ? [name] : []))
}

/** The id of the environment a record was made for: a recycled name never passes for this very instance. */
export const writeToken = async (adminDir: string, id: string): Promise<void> => {
  replaceFileSync(tokenFile(adminDir), `${id}\n`, { sync: true })
}

export const readToken = async (adminDir: string): Promise<string | undefined> => readText(tokenFile(adminDir))

/** From then on the worktree is like any other that a person made. */
export const clearToken = async (adminDir: string): Promise<void> => rmSync(tokenFile(adminDir), { force: true })

export const tokenFile = (adminDir: string): string => join(adminDir, 'coppice')

/** The reason of the lock; empty for a lock without one, undefined for none. */
export const readLock = async (adminDir: string): Promise<string | undefined> => readText(join(adminDir, 'locked'))

/** As `git worktree lock` does it. False when somebody else's lock is there, which stays. */
export const setLock = async (adminDir: string, reason: string): Promise<boolean> => {
  const path = join(adminDir, 'locked')
  const temporary = `${path}.${process.pid}.tmp`
  writeNewFileSync(temporary, `${reason}\n`, { sync: true })
  try {
    // A link fails where something is: the lock appears with its reason or not at all, and never over another.
    linkSync(temporary, path)
    return true
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
    return readText(path) === reason
  } finally {
    rmSync(temporary, { force: true })
  }
}

/**
 * Takes the lock away, with a reason only if it is the one with that reason; true when afterwards there is none.
 * Without a reason the caller has made sure whose lock it is.
 */
export const clearLock = async (adminDir: string, reason?: string): Promise<boolean> => {
  const path = join(adminDir, 'locked')
  if (reason === undefined || readText(path) === reason) rmSync(path, { force: true })
  return !existsSync(path)
}

/** A file's text without the newline at its end; undefined when there is no such file. */
const readText = (path: string): string | undefined => readUntrustedTextSync(path)?.trimEnd()

const readLine = (path: string): string | undefined =>
  readUntrustedTextSync(path, { maxBytes: maxLineBytes })?.trimEnd()

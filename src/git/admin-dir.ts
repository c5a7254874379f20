import { existsSync, linkSync, lstatSync, readlinkSync, realpathSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { hasCode } from '../domain/error-code.ts'
import { AppError } from '../domain/errors.ts'
import { unlessMissing, unlessMissingSync } from '../domain/missing.ts'
import { isSha, type Sha } from '../domain/names.ts'
import { linkedGitDirectory, maxLineBytes } from '../domain/git-link.ts'
import { shownPath } from '../domain/text/raw-path.ts'
import { listDirectory } from '../process/files/list-directory.ts'
import { readUntrustedTextSync } from '../process/files/read-untrusted.ts'
import { replaceFileSync, writeNewFileSync } from '../process/files/replace-file.ts'
import { createTimeSlice } from '../process/time-slice.ts'
import { maxConfigBytes, maxWorktreeRecords } from './file-limits.ts'
import { remedy, shell } from '../domain/remedy.ts'

/*
 * Git's worktree records, read as files without starting git. The functions return promises, like all queries of a
 * repository, but read synchronously: a few small files take microseconds, ten times as long through the thread pool.
 * A missing file is undefined. An unreadable one throws: *unknown* isn't *absent*.
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
  /** Branches that a rebase or bisect here will return to. Like the checked-out branch, they are in use. */
  readonly busyBranches: readonly string[]
}

export const readAdminDirs = (commonDir: string): Promise<AdminDir[]> => readEach(commonDir, readOne)

/** Worktree paths from git's records: reads one small file per record, a tenth of the whole record. */
export const worktreePaths = (commonDir: string): Promise<string[]> => readEach(commonDir, worktreePathSync)

/** Also of what isn't a whole record. */
export const recordNames = (commonDir: string): Promise<string[]> => readEach(commonDir, basename)

/** Synchronous per record, but yields between records: an agent can create thousands. */
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

/** A record takes well under a millisecond, unless its files are megabytes. */
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

/** undefined when the record doesn't exist or isn't a directory. */
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

/** HEAD of a worktree or repository; undefined when missing or malformed. */
export const readHead = async (gitDir: string): Promise<Head | undefined> => headOf(gitDir)

const headOf = (gitDir: string): Head | undefined => {
  const text = headText(gitDir)
  if (text === undefined) return undefined
  const ref = /^ref:\s*refs\/heads\/(.+)$/.exec(text)?.[1]
  if (ref !== undefined) return { branch: ref }
  return isSha(text) ? { sha: text } : undefined
}

/** Git once made HEAD a symlink to `refs/heads/…`, and still reads one. The target is enough, so don't follow it. */
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

/** The record that a worktree's `.git` file points to; undefined when the file or the record is missing. */
export const readWorktreeLink = async (path: string): Promise<string | undefined> => readWorktreeLinkSync(path)

export const readWorktreeLinkSync = (path: string): string | undefined => {
  const dotGit = join(path, '.git')
  if (unlessMissingSync(() => statSync(dotGit))?.isFile() !== true) return undefined
  const target = linkedGitDirectory(readLine(dotGit))
  // Not Node's own, which asks about every directory on the way.
  return target === undefined ? undefined : unlessMissingSync(() => realpathSync.native(resolve(path, target)))
}

/** The worktree (or main checkout) that uses the branch: git refuses to check it out elsewhere. */
export const branchCheckedOut = async (commonDir: string, branch: string): Promise<string | undefined> => {
  if (!isBare(commonDir) && holds(headOf(commonDir), busyBranches(commonDir), branch)) {
    return basename(commonDir) === '.git' ? dirname(commonDir) : commonDir
  }
  const holder = (await readAdminDirs(commonDir)).find((admin) => holds(admin.head, admin.busyBranches, branch))
  return holder && (holder.worktreePath ?? holder.dir)
}

const holds = (head: Head | undefined, busy: readonly string[], branch: string): boolean =>
  (head !== undefined && 'branch' in head && head.branch === branch) || busy.includes(branch)

/** A bare repository's HEAD names a branch that isn't checked out. When in doubt, not bare. */
const isBare = (commonDir: string): boolean => {
  const text = readUntrustedTextSync(join(commonDir, 'config'), { maxBytes: maxConfigBytes })
  // Not `\s`, which spans lines: a megabyte of newlines would take quadratic time.
  const core = /^[ \t]*\[core\]([^[]*)/im.exec(text ?? '')?.[1]
  return core !== undefined && /^[ \t]*bare[ \t]*=[ \t]*true[ \t\r]*$/im.test(core)
}

const busyBranches = (gitDir: string): string[] => {
  const heads = ['rebase-merge', 'rebase-apply'].map((dir) => readText(join(gitDir, dir, 'head-name')))
  // `rebase --update-refs` moves these too. The file repeats: ref, old value, new value.
  const updated = (readText(join(gitDir, 'rebase-merge', 'update-refs')) ?? '').split('\n')
  const bisect = readText(join(gitDir, 'BISECT_START'))
  const refs = [...heads, ...updated].flatMap((ref) => /^refs\/heads\/(.+)$/.exec(ref ?? '')?.[1] ?? [])
  return [...new Set([...refs, ...(bisect === undefined || isSha(bisect) ? [] : [bisect])])]
}

export type HalfDone = 'merge' | 'rebase' | 'cherry-pick' | 'revert' | 'am' | 'bisect' | 'notes merge'

/** Operations in progress in a worktree: neither finished nor aborted. */
export const halfDone = (gitDir: string): HalfDone[] => {
  const has = (...parts: string[]): boolean =>
    unlessMissingSync(() => statSync(join(gitDir, ...parts), { throwIfNoEntry: false })) !== undefined
  const applying = has('rebase-apply', 'applying')
  // Between two commits of a sequence CHERRY_PICK_HEAD doesn't exist, only the todo list.
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

/** The id of the environment that the record was created for, so a reused name isn't mistaken for it. */
export const writeToken = async (adminDir: string, id: string): Promise<void> => {
  replaceFileSync(tokenFile(adminDir), `${id}\n`, { sync: true })
}

export const readToken = async (adminDir: string): Promise<string | undefined> => readText(tokenFile(adminDir))

/** After this, the worktree is like one that a person created. */
export const clearToken = async (adminDir: string): Promise<void> => rmSync(tokenFile(adminDir), { force: true })

export const tokenFile = (adminDir: string): string => join(adminDir, 'coppice')

/** The lock's reason; empty for a lock without one, undefined when unlocked. */
export const readLock = async (adminDir: string): Promise<string | undefined> => readText(join(adminDir, 'locked'))

/** Like `git worktree lock`. False when someone else holds the lock, which stays. */
export const setLock = async (adminDir: string, reason: string): Promise<boolean> => {
  const path = join(adminDir, 'locked')
  const temporary = `${path}.${process.pid}.tmp`
  writeNewFileSync(temporary, `${reason}\n`, { sync: true })
  try {
    // A hard link never overwrites: the lock appears complete with its reason, or not at all.
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
 * Removes the lock; with `reason`, only a lock with that reason. True when the worktree is unlocked afterwards.
 * Without `reason`, the caller has checked whose lock it is.
 */
export const clearLock = async (adminDir: string, reason?: string): Promise<boolean> => {
  const path = join(adminDir, 'locked')
  if (reason === undefined || readText(path) === reason) rmSync(path, { force: true })
  return !existsSync(path)
}

/** A file's text without trailing whitespace; undefined when the file is missing. */
const readText = (path: string): string | undefined => readUntrustedTextSync(path)?.trimEnd()

const readLine = (path: string): string | undefined =>
  readUntrustedTextSync(path, { maxBytes: maxLineBytes })?.trimEnd()

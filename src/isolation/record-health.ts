import { lstatSync, realpathSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { unlessMissingSync } from '../domain/missing.ts'
import { readAdminDir, readAdminDirs, readHead, readToken, readWorktreeLink } from '../git/admin-dir.ts'
import { readUntrustedTextSync } from '../process/read-untrusted.ts'

/** What is broken between git's record of an environment and its directory, and which repair really works. */
export type RecordFault = { readonly detail: string; readonly repair: RecordRepair }

export type RecordRepair =
  /** Git writes the file `gitdir` of the record anew, from the link in the directory. */
  | { readonly kind: 'from-directory' }
  /** Git writes the link in the directory anew, from its record. */
  | { readonly kind: 'from-record' }
  /** Git repairs neither of these; their content is known. */
  | { readonly kind: 'write'; readonly file: string; readonly content: string }
  /** The link in the directory is written by hand, and then git writes its record from that. */
  | { readonly kind: 'relink'; readonly file: string; readonly dir: string }
  /** The same, once somebody has looked at what is in the way. */
  | { readonly kind: 'move-away'; readonly file: string; readonly dir: string }
  /** A FIFO, a link or a directory where git has a file: out of the way first, then it is a file that is missing. */
  | { readonly kind: 'clear'; readonly file: string }
  /** There is nothing to repair it from: only its files are left. */
  | { readonly kind: 'give-up' }

/** undefined when record and directory are whole and agree. The directory itself may be missing. */
export const recordFault = async (
  codebase: Codebase,
  environment: IsolatedEnvironment,
): Promise<RecordFault | undefined> => {
  const { adminName, id, owned, branch, path } = environment
  if (adminName === undefined) return undefined
  const dir = join(codebase.repoPath, 'worktrees', adminName)
  const odd = recordFiles.map((name) => join(dir, name)).find(isOdd)
  if (odd !== undefined) return { detail: `${odd} is not a file`, repair: { kind: 'clear', file: odd } }
  const record = await readAdminDir(dir)
  if (record === undefined) return { detail: `git's record of it (${dir}) is gone`, repair: { kind: 'give-up' } }
  const token = await readToken(dir)
  if (owned && token !== id) {
    const whose = token === undefined ? 'has lost its mark' : 'is of another worktree'
    return { detail: `git's record ${dir} ${whose}`, repair: { kind: 'give-up' } }
  }
  if ((await readHead(dir)) === undefined) {
    const repair = { kind: 'write', file: join(dir, 'HEAD'), content: `ref: refs/heads/${branch}` } as const
    return { detail: `HEAD in git's record ${dir} is missing or broken`, repair }
  }
  if (!leadsTo(dir, codebase.repoPath)) {
    const repair = { kind: 'write', file: join(dir, 'commondir'), content: '../..' } as const
    return { detail: `commondir in git's record ${dir} is missing or broken`, repair }
  }
  return linkFault(dir, record.worktreePath, path)
}

const recordFiles = ['HEAD', 'gitdir', 'commondir', 'locked', 'coppice']

const isOdd = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isFile() === false

const linkFault = async (dir: string, recorded: string | undefined, path: string): Promise<RecordFault | undefined> => {
  const dotGit = join(path, '.git')
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return undefined
  const found = lstatSync(dotGit, { throwIfNoEntry: false })
  const isLinked = found?.isFile() === true && (await readWorktreeLink(path)) === dir
  if (isLinked && recorded === path) return undefined
  if (isLinked) {
    const where = recorded === undefined ? 'does not say where its files are' : `says that its files are at ${recorded}`
    return { detail: `git's record ${dir} ${where}`, repair: { kind: 'from-directory' } }
  }
  if (found !== undefined && !found.isFile()) {
    return { detail: `${dotGit} is not the file that git wrote`, repair: { kind: 'move-away', file: dotGit, dir } }
  }
  if (recorded !== path) {
    return {
      detail: `${dotGit} and git's record ${dir} are both broken`,
      repair: { kind: 'relink', file: dotGit, dir },
    }
  }
  const what = found === undefined ? 'is missing' : 'does not lead to its repository'
  return { detail: `${dotGit} ${what}`, repair: { kind: 'from-record' } }
}

const leadsTo = (dir: string, repoPath: string): boolean => {
  const text = readUntrustedTextSync(join(dir, 'commondir'))?.trim()
  if (text === undefined || text === '') return false
  return unlessMissingSync(() => realpathSync(resolve(dir, text))) === repoPath
}

/** Records that git cannot read and that belong to nothing of ours. */
export const brokenRecords = async (codebase: Codebase, ours: ReadonlySet<string>): Promise<string[]> => {
  const records = await readAdminDirs(codebase.repoPath)
  return records
    .filter(({ name, dir, head, worktreePath }) => {
      if (ours.has(name)) return false
      return head === undefined || worktreePath === undefined || !leadsTo(dir, codebase.repoPath)
    })
    .map(({ dir }) => dir)
}

import { lstatSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import { maxLineBytes } from '../../../domain/git-link.ts'
import { toRepoPath } from '../../../domain/names.ts'
import { readAdminDir, readToken, readWorktreeLink } from '../../../git/admin-dir.ts'
import type { Tree } from '../../../git/door.ts'
import { readUntrustedTextSync } from '../../../process/files/read-untrusted.ts'
import type { Presence } from '../../provider.ts'
import { isMissing } from '../../../domain/missing.ts'
import { UnusableFileError } from '../../../domain/errors.ts'

/** By git's record of the worktree, which has our token, and the directory's link to it. Starts no process. */
export const presenceOf = async (codebase: Codebase, environment: IsolatedEnvironment): Promise<Presence> => {
  try {
    const found = await look(codebase, environment)
    if (found.state === 'present') return found
    const tree = await movedTree(codebase, environment)
    return tree === undefined ? found : { state: 'moved', tree, detail: `it was moved to ${tree.path}` }
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error)
    return { state: 'cannot-tell', detail, file: error instanceof UnusableFileError ? error.path : undefined }
  }
}

/** Where git's record says it is, if record and directory agree and that isn't the path in our row. */
const movedTree = async (codebase: Codebase, environment: IsolatedEnvironment): Promise<Tree | undefined> => {
  const { adminName, path } = environment
  if (adminName === undefined) return undefined
  const record = await readAdminDir(join(codebase.repoPath, 'worktrees', adminName))
  const to = record?.worktreePath
  if (record === undefined || to === undefined || to === path) return undefined
  if ((await readWorktreeLink(to)) !== record.dir || !pointsBack(record.dir, to)) return undefined
  // Both directories claim the record: whoever wrote that, nothing was moved.
  if ((await readWorktreeLink(path)) === record.dir) return undefined
  const token = await readToken(record.dir)
  // An adopted one may have no token: then its branch must match.
  const branch = record.head !== undefined && 'branch' in record.head ? record.head.branch : undefined
  const adopted = !environment.owned && token === undefined && branch === environment.branch
  return token === environment.id || adopted ? treeAt(codebase, record.dir, to) : undefined
}

const look = async (codebase: Codebase, { path, owned, id, adminName }: IsolatedEnvironment): Promise<Presence> => {
  if (!exists(path)) return { state: 'missing' }
  const adminDir = await readWorktreeLink(path)
  if (adminDir === undefined) return { state: 'not-ours', detail: `${path} exists but is no longer a git worktree` }
  if (dirname(adminDir) !== join(codebase.repoPath, 'worktrees')) {
    return { state: 'not-ours', detail: `${path} belongs to another repository (${adminDir})` }
  }
  if (adminName !== undefined && basename(adminDir) !== adminName) {
    return { state: 'not-ours', detail: `${path} is now another worktree (${basename(adminDir)}, not ${adminName})` }
  }
  if (!pointsBack(adminDir, path)) {
    return { state: 'not-ours', detail: `git's record ${basename(adminDir)} belongs to another directory` }
  }
  // The token dies with git's record, so the next owner of a reused name never has it.
  if (owned && (await readToken(adminDir)) !== id) {
    return { state: 'not-ours', detail: `${path} was recreated by someone else` }
  }
  return { state: 'present', tree: treeAt(codebase, adminDir, path) }
}

/** Synchronous, here and below: a stat takes a few microseconds, through the thread pool a hundred. */
const exists = (path: string): boolean => {
  try {
    lstatSync(path)
    return true
  } catch (error) {
    // Only ENOENT means gone; an unreadable directory isn't gone.
    if (isMissing(error)) return false
    throw error
  }
}

const pointsBack = (adminDir: string, path: string): boolean =>
  readUntrustedTextSync(join(adminDir, 'gitdir'), { maxBytes: maxLineBytes })?.trim() === join(path, '.git')

export const treeAt = (codebase: Codebase, adminDir: string, path: string): Tree => ({
  commonDir: toRepoPath(codebase.repoPath),
  gitDir: adminDir,
  path,
})

/** Its record must have this environment's token. Git needs a directory to run in: the repository's. */
export const treeOfMissing = async (
  codebase: Codebase,
  { adminName, id, owned }: IsolatedEnvironment,
): Promise<Tree | undefined> => {
  if (adminName === undefined || !owned) return undefined
  const dir = join(codebase.repoPath, 'worktrees', adminName)
  const isIts = (await readAdminDir(dir)) !== undefined && (await readToken(dir)) === id
  return isIts ? treeAt(codebase, dir, codebase.repoPath) : undefined
}

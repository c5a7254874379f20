import { existsSync } from 'node:fs'
import { mkdir, readdir, rename } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { hasCode } from '../../domain/error-code.ts'
import { unlessMissing } from '../../domain/missing.ts'
import { readWorktreeLinkSync } from '../../git/admin-dir.ts'
import type { IsolationContext } from '../context.ts'
import { syncDirectory } from '../durable.ts'
import { managedRoot, trashDirectory } from '../paths.ts'

/** What a removal under way may still want back lies under its own id; what nobody wants back is called this. */
const gone = 'gone-'

export const trashPath = (root: string, id: string): string => join(trashDirectory(root), id)

/** Moves a directory out of the way on its own file system: one rename, undone by one rename. */
export const moveToTrash = async (root: string, path: string, id: string): Promise<string> => {
  const trash = trashDirectory(root)
  await mkdir(trash, { recursive: true, mode: 0o700 })
  const target = trashPath(root, id)
  await rename(path, target)
  await syncDirectory(trash)
  return target
}

/** From here on the bytes may go at any time. Harmless when it was done before. */
export const giveUp = async (root: string, id: string): Promise<string> => {
  const target = trashPath(root, `${gone}${id}`)
  try {
    await rename(trashPath(root, id), target)
  } catch (error) {
    // Not ENOTDIR: that is a file where the directory is to go.
    if (!hasCode(error, 'ENOENT')) throw error
  }
  return target
}

/** Straight into the trash without a way back: only for what was never anybody's. */
export const discardDirectory = async (root: string, path: string, id: string): Promise<string> =>
  moveToTrash(root, path, `${gone}${id}`)

/**
 * A linked worktree that git still has a record of: somebody made it in the trash, or in the tree after the second look.
 * Deleting it would take its work and orphan its record.
 */
export const leaveLiveWorktree = (directory: Buffer): string | undefined => {
  try {
    const record = readWorktreeLinkSync(directory.toString())
    return record === undefined || !existsSync(join(record, 'commondir')) ? undefined : 'a worktree of git'
  } catch (error) {
    // Unreadable is not *nothing*.
    return error instanceof Error ? error.message : String(error)
  }
}

/** What the background deletion may delete: something given up in the trash of a root of ours, nothing else. */
export const isGivenUp = async ({ host }: Pick<IsolationContext, 'host'>, path: string): Promise<boolean> => {
  const root = await managedRoot(path, host)
  return root !== undefined && dirname(path) === trashDirectory(root) && basename(path).startsWith(gone)
}

/** Deletes, in the background, what was given up. Answers how many directories that is. */
export const emptyTrash = async (context: IsolationContext, root: string): Promise<number> => {
  const names = (await unlessMissing(readdir(trashDirectory(root)))) ?? []
  const done = names.filter((name) => name.startsWith(gone)).map((name) => trashPath(root, name))
  if (done.length > 0) context.reap(done)
  return done.length
}

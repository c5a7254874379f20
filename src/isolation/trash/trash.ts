import { lstat, mkdir, readdir, rename } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { hasCode } from '../../domain/error-code.ts'
import { AppError } from '../../domain/errors.ts'
import { unlessMissing } from '../../domain/missing.ts'
import { shellWord } from '../../domain/text/shell-word.ts'
import { leaveLiveWorktree } from '../codebases/live-worktree.ts'
import type { IsolationContext } from '../context.ts'
import { syncDirectory } from '../durable.ts'
import { givenUpName, isGivenUpDirectory } from './given-up.ts'
import { managedRoot, trashBeside, trashDirectory } from '../paths.ts'
import { remedy, shell } from '../../domain/remedy.ts'

/** Prefix of what nobody needs back; what a removal in progress may still need is named by its id alone. */
const gone = 'gone-'

/** In the root's trash, or beside the directory if that is on a mount which no rename can leave. */
const trashesOf = (root: string, path: string): string[] => [trashDirectory(root), trashBeside(path)]

/** Moves a directory away on its own mount: one rename, undone by one rename. */
export const moveToTrash = async (root: string, path: string, id: string): Promise<string> => {
  for (const trash of trashesOf(root, path)) {
    await mkdir(trash, { recursive: true, mode: 0o700 })
    if (!(await lstat(trash)).isDirectory()) throw notADirectory(trash)
    const target = join(trash, id)
    try {
      await rename(path, target)
    } catch (error) {
      if (hasCode(error, 'EXDEV')) continue
      throw error
    }
    await syncDirectory(trash)
    return target
  }
  throw new AppError('path-taken', `couldn't move ${path} to the trash: ${trashBeside(path)} is on another mount`, {
    remedy: remedy`${shell(`umount ${shellWord(trashBeside(path))}`)}`,
  })
}

const notADirectory = (trash: string): AppError =>
  new AppError('path-taken', `${trash} is a link, so nothing can be moved to the trash`, {
    remedy: remedy`move it aside: ${shell(`mv ${shellWord(trash)} <elsewhere>`)}`,
  })

/** What a removal moved to the trash and hasn't given up; undefined if it isn't there. */
export const findInTrash = async (root: string, path: string, id: string): Promise<string | undefined> => {
  for (const place of trashesOf(root, path).map((trash) => join(trash, id))) {
    if ((await unlessMissing(lstat(place))) !== undefined) return place
  }
  return undefined
}

/** From here on the files may be deleted at any time. Idempotent. Undefined: nothing to delete. */
export const giveUp = async (root: string, path: string, id: string): Promise<string | undefined> => {
  const from = await findInTrash(root, path, id)
  if (from === undefined) return findGivenUp(root, path, id)
  const target = join(dirname(from), await givenUpName(gone, id, from))
  await rename(from, target)
  return target
}

const findGivenUp = async (root: string, path: string, id: string): Promise<string | undefined> => {
  for (const trash of trashesOf(root, path)) {
    for (const name of (await unlessMissing(readdir(trash))) ?? []) {
      if (name.startsWith(`${gone}${id}.`) && (await isGivenUpDirectory(gone, join(trash, name))))
        return join(trash, name)
    }
  }
  return undefined
}

/** Straight to the trash, with no way back: only for what was never anybody's. */
export const discardDirectory = async (root: string, path: string, id: string): Promise<string> =>
  moveToTrash(root, path, await givenUpName(gone, id, path))

/** The background deletion may delete only what we gave up in a trash of ours. */
export const isGivenUp = async ({ host }: Pick<IsolationContext, 'host'>, path: string): Promise<boolean> => {
  const trash = dirname(path)
  const root = (await managedRoot(path, host)) ?? (await managedRoot(trash, host))
  if (root === undefined || basename(trash) !== basename(trashDirectory(root))) return false
  if ((await unlessMissing(lstat(trash)))?.isDirectory() !== true) return false
  return (await isGivenUpDirectory(gone, path)) && leaveLiveWorktree(Buffer.from(path)) === undefined
}

/** Everything in the trash of a root, or beside its worktrees. */
export const listTrash = async (root: string): Promise<string[]> => {
  const directories = (await unlessMissing(readdir(root, { withFileTypes: true }))) ?? []
  const beside = directories.filter((entry) => entry.isDirectory()).map(({ name }) => join(root, name, '.trash'))
  const found: string[] = []
  for (const trash of [trashDirectory(root), ...beside]) {
    found.push(...(await namesIn(trash)).map((name) => join(trash, name)))
  }
  return found
}

/** Empty for a link or an unreadable directory: that isn't our trash. */
const namesIn = async (trash: string): Promise<string[]> => {
  try {
    return (await lstat(trash)).isDirectory() ? await readdir(trash) : []
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'EACCES') || hasCode(error, 'ENOTDIR')) return []
    throw error
  }
}

/** Deletes, in the background, what was given up. Returns how many directories. */
export const emptyTrash = async (
  context: Pick<IsolationContext, 'host' | 'deleteInBackground'>,
  root: string,
): Promise<number> => {
  const done: string[] = []
  for (const path of await listTrash(root)) if (await isGivenUp(context, path)) done.push(path)
  if (done.length > 0) context.deleteInBackground(done)
  return done.length
}

import { realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative, sep } from 'node:path'
import { isMissing } from '../domain/missing.ts'

/**
 * The real path of what an absolute path names, if that is inside the root; else undefined. A symlink that points
 * outside is outside. What doesn't exist yet counts by the deepest directory that does: the rest can't contain a link.
 */
export const containedPath = async (root: string, path: string): Promise<string | undefined> => {
  const real = await realPathOf(path)
  const inside = relative(await realpath(root), real)
  return inside === '..' || inside.startsWith(`..${sep}`) || isAbsolute(inside) ? undefined : real
}

const realPathOf = async (path: string): Promise<string> => {
  try {
    return await realpath(path)
  } catch (error) {
    if (!isMissing(error) || dirname(path) === path) throw error
    return join(await realPathOf(dirname(path)), basename(path))
  }
}

/** Whether a contained path is git's own. */
export const belongsToGit = async (root: string, contained: string): Promise<boolean> =>
  relative(await realpath(root), contained)
    .split(sep)
    .some(isGitName)

/** macOS ignores case and these characters in names. */
const isGitName = (name: string): boolean =>
  name.replaceAll(/[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g, '').toLowerCase() === '.git'

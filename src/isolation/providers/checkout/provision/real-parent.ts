import { lstat, mkdir, realpath } from 'node:fs/promises'
import { dirname, isAbsolute, join } from 'node:path'
import { AppError } from '../../../../domain/errors.ts'
import { isMissing } from '../../../../domain/missing.ts'

export type Parent =
  | { readonly kind: 'real'; readonly path: string }
  | { readonly kind: 'missing' }
  /** A link or file is where a directory has to be. */
  | { readonly kind: 'blocked'; readonly at: string }

/**
 * The directory of `relativePath`, reached from `root` through real directories only. Threat: a branch that tracks
 * `config` as a link to `/home/me/.ssh` makes "copy config/env into the tree" write there. `create` makes missing
 * directories, with the modes of those under `create.like`.
 */
export const realParent = async (
  root: string,
  relativePath: string,
  create?: { readonly like: string | undefined },
): Promise<Parent> => {
  assertPlain(relativePath)
  const parts = relativePath.split('/').slice(0, -1)
  for (let depth = 1; depth <= parts.length; depth++) {
    const way = parts.slice(0, depth).join('/')
    const found = await kindOf(join(root, way))
    if (found === 'other') return { kind: 'blocked', at: way }
    if (found === 'missing') {
      if (create === undefined) return { kind: 'missing' }
      await mkdir(join(root, way), { mode: await modeLike(create.like, way) })
    }
  }
  const parent = dirname(join(root, relativePath))
  // Check again with the kernel: our own parsing must not be the only thing that keeps a copy inside.
  const real = await realpath(parent)
  return real === join(await realpath(root), parts.join('/'))
    ? { kind: 'real', path: parent }
    : { kind: 'blocked', at: parts.join('/') }
}

/** Globs and config are checked when they are read; this is a second check. */
const assertPlain = (path: string): void => {
  const bad = (part: string) => part === '' || part === '.' || part === '..' || part.toLowerCase() === '.git'
  if (isAbsolute(path) || path.includes('\0') || path.split('/').some(bad)) {
    throw new AppError('path-outside-root', `${JSON.stringify(path)} does not stay inside the working tree`)
  }
}

const kindOf = async (path: string): Promise<'directory' | 'missing' | 'other'> => {
  try {
    return (await lstat(path)).isDirectory() ? 'directory' : 'other'
  } catch (error) {
    if (isMissing(error)) return 'missing'
    throw error
  }
}

/** We must be able to write to it, regardless of the other's mode. */
const modeLike = async (root: string | undefined, way: string): Promise<number> =>
  root === undefined ? 0o777 : ((await lstat(join(root, way))).mode & 0o777) | 0o700

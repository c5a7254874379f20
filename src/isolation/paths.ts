import { createHash } from 'node:crypto'
import { open, realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative } from 'node:path'
import { hasCode } from '../domain/error-code.ts'
import { AppError } from '../domain/errors.ts'
import type { BranchName } from '../domain/names.ts'
import { makeDirectorySync } from '../process/files/make-directory.ts'
import { readUntrustedText } from '../process/files/read-untrusted.ts'

/** Marks a root that Coppice manages; nothing outside of such a root is ever deleted. */
const marker = '.coppice-root'

/** The directory names for a branch: the plain one first, then one that no other branch can get. */
export const pathCandidates = (root: string, codebase: string, branch: BranchName): [string, string] => {
  const plain = branch.replaceAll('/', '-')
  const hash = createHash('sha256').update(branch).digest('hex').slice(0, 8)
  const hashed = `${cut(plain)}-${hash}`
  return [join(root, codebase, plain === cut(plain) ? plain : hashed), join(root, codebase, hashed)]
}

/** A file name has at most 255 bytes; a branch name may have more. Cuts between characters. */
const cut = (name: string): string => {
  let kept = name
  while (Buffer.byteLength(kept) > 200) kept = kept.slice(0, -1)
  return kept.replace(/[\ud800-\udbff]$/, '')
}

/** Creates the root and the codebase's directory, and ensures that no link leads out of the root. */
export const prepareRoot = async (base: string, codebase: string, host: string): Promise<string> => {
  makeDirectorySync(join(base, codebase))
  const root = await realpath(base)
  const inside = await realpath(join(root, codebase))
  if (inside !== join(root, codebase)) {
    throw new AppError('path-outside-root', `${join(root, codebase)} is a link to ${inside}`, {
      remedy: 'replace the link with a directory, or move the whole root with WORKTREE_BASE',
    })
  }
  await markRoot(root, host)
  return root
}

const markRoot = async (root: string, host: string): Promise<void> => {
  try {
    const file = await open(join(root, marker), 'wx', 0o600)
    await file.writeFile(`${host}\n`)
    await file.sync()
    await file.close()
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
  }
}

/** Makes the directory two levels above an existing worktree a root of ours, so that the worktree can be removed. */
export const claimRootOf = async (path: string, host: string): Promise<void> => {
  const root = dirname(dirname(path))
  await markRoot(root, host)
  if ((await managedRoot(path, host)) === root) return
  throw new AppError('path-outside-root', `${root} is managed by Coppice on another host, or reached through a link`)
}

/** Whether `claimRootOf` can: no other home of Coppice has marked that directory. */
export const isClaimable = async (path: string, host: string): Promise<boolean> => {
  const owner = await readUntrustedText(join(dirname(dirname(path)), marker)).catch(() => '')
  return owner === undefined || owner.trim() === host
}

/** The managed root above an environment's directory (`<root>/<codebase>/<leaf>`), or undefined if it has none. */
export const managedRoot = async (path: string, host: string): Promise<string | undefined> => {
  const root = dirname(dirname(path))
  try {
    const owner = (await readUntrustedText(join(root, marker)))?.trim()
    if (owner !== host) return undefined
    // Compare real paths: a link on the way could make "inside" mean somewhere else.
    return (await realpath(dirname(path))) === join(await realpath(root), relative(root, dirname(path)))
      ? root
      : undefined
  } catch {
    return undefined
  }
}

/** Trash and spares are in the root itself, so that a move there is a rename on one file system. */
export const trashDirectory = (root: string): string => join(root, '.trash')
/** For a worktree whose codebase directory is a separate mount. No branch name begins with a dot. */
export const trashBeside = (path: string): string => join(dirname(path), '.trash')
export const spareDirectory = (root: string): string => join(root, '.spares')
/** Checkouts in which something is only tried out. */
export const scratchDirectory = (root: string): string => join(root, '.scratch')

/** Trash is about to be deleted; a spare is not an environment yet, and a scratch tree never becomes one. */
export const isInternal = (path: string): boolean => ['.trash', '.spares', '.scratch'].includes(basename(dirname(path)))

export const isInside = (directory: string, path: string): boolean => {
  const way = relative(directory, path)
  return way === '' || (way !== '..' && !way.startsWith('../') && !isAbsolute(way))
}

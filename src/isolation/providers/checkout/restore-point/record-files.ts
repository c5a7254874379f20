import { lstat, readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { unlessMissing } from '../../../../domain/missing.ts'
import { tagsFile } from '../look/fetched-tags.ts'

/** Every file of git's record of a tree, as a relative path. */
export const recordFiles = async (adminDir: string, below = ''): Promise<string[]> => {
  const found: string[] = []
  for (const entry of await readdir(join(adminDir, below), { withFileTypes: true })) {
    const name = below === '' ? entry.name : `${below}/${entry.name}`
    // Submodules' git directories are saved whole and may have thousands of files; their HEADs suffice.
    if (entry.isDirectory() && entry.name !== 'objects') found.push(...(await recordFiles(adminDir, name)))
    else if (entry.isFile()) found.push(name)
  }
  return found
}

/** False once git begins deleting it, which goes file by file, in no fixed order. */
export const areAllThere = async (adminDir: string, files: readonly string[]): Promise<boolean> => {
  if (files.length === 0) return false
  for (const name of files) if ((await unlessMissing(lstat(join(adminDir, name)))) === undefined) return false
  return true
}

/**
 * Changes with every commit, ref and operation in the tree and its submodules, even those that leave no trace in the
 * files. Ignores the index, which `git status` rewrites (for a split one it renews the time), the files that tie the
 * record to its directory, and the tags that a remote reported.
 */
export const recordStamp = async (adminDir: string): Promise<string> => {
  const lines: string[] = []
  for (const name of (await recordFiles(adminDir)).sort()) {
    if (isIndex(basename(name)) || basename(name) === tagsFile || tying.has(name)) continue
    const found = await unlessMissing(lstat(join(adminDir, name), { bigint: true }))
    lines.push(found === undefined ? `${name} -` : `${name} ${found.ino} ${found.size} ${found.mtimeNs}`)
  }
  return lines.join('\n')
}

const isIndex = (name: string): boolean => name === 'index' || name === 'index.lock' || name.startsWith('sharedindex.')

const tying: ReadonlySet<string> = new Set(['commondir', 'coppice', 'gitdir', 'locked'])

import { lstat, readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { unlessMissing } from '../../../../domain/missing.ts'
import { tagsFile } from '../look/fetched-tags.ts'

/** Every file of git's record of a tree, by its name below it. */
export const recordFiles = async (adminDir: string, below = ''): Promise<string[]> => {
  const found: string[] = []
  for (const entry of await readdir(join(adminDir, below), { withFileTypes: true })) {
    const name = below === '' ? entry.name : `${below}/${entry.name}`
    // Submodules' git directories are saved whole and may have thousands of files; their HEADs speak for them.
    if (entry.isDirectory() && entry.name !== 'objects') found.push(...(await recordFiles(adminDir, name)))
    else if (entry.isFile()) found.push(name)
  }
  return found
}

/** Has git begun to delete it? It goes file by file, in no order that one could rely on. */
export const areAllThere = async (adminDir: string, files: readonly string[]): Promise<boolean> => {
  if (files.length === 0) return false
  for (const name of files) if ((await unlessMissing(lstat(join(adminDir, name)))) === undefined) return false
  return true
}

/**
 * Changes with every commit, ref and operation in the tree and its submodules, also with those that leave no trace in
 * the files. Not with an index, which `git status` rewrites (of a split one it renews the time), nor with what ties the
 * record to its directory, nor with the tags that a remote told us of.
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

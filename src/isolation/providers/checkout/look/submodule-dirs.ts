import { lstatSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../../../../domain/error-code.ts'
import { readHead } from '../../../../git/admin-dir.ts'

export type SubmoduleDir = { readonly name: string; readonly dir: string }

/** Submodules' git directories in a git directory, even nested ones (`modules/a/modules/b`, `modules/dir/a`). */
export const submoduleDirs = (gitDir: string): Promise<SubmoduleDir[]> => dirsBelow(join(gitDir, 'modules'), '')

const dirsBelow = async (root: string, prefix: string): Promise<SubmoduleDir[]> => {
  // Most worktrees have none, and this is asked of every one that is listed.
  if (lstatSync(root, { throwIfNoEntry: false }) === undefined) return []
  const entries = await readdir(root, { withFileTypes: true }).catch((error: unknown) => {
    // Not ENOTDIR: a file in its place is unexpected.
    if (hasCode(error, 'ENOENT')) return []
    throw error
  })
  const found: SubmoduleDir[] = []
  for (const entry of entries.filter((one) => one.isDirectory())) {
    const dir = join(root, entry.name)
    const name = prefix === '' ? entry.name : `${prefix}/${entry.name}`
    if ((await readHead(dir)) === undefined) found.push(...(await dirsBelow(dir, name)))
    else found.push({ name, dir }, ...(await dirsBelow(join(dir, 'modules'), name)))
  }
  return found
}

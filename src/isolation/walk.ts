import { type Stats, lstatSync, readdirSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { bytesBelow, shownPath } from '../domain/raw-path.ts'
import { unlessMissingSync } from '../domain/missing.ts'

/** How deep a directory that can be made again is looked into: a clone in `node_modules/lib` is somebody's work. */
const regenerableDepth = 2

export type Walk = {
  /**
   * Every `.git` below the top (raw paths). `git status` never speaks of them: a repository made in a tracked directory,
   * or files in a directory that is merely called `.git`, would go without a word.
   */
  readonly gits: readonly string[]
  /** When each directory last gained, lost or renamed an entry. */
  readonly directories: ReadonlyMap<string, string>
}

/**
 * All directories of a tree: 30,000 files in 3,750 directories take about 40 ms. It gives way now and then, so that the
 * git processes that look at the same tree are started and heard meanwhile.
 */
export const walk = async (root: string, regenerable: ReadonlySet<string>): Promise<Walk> => {
  const gits: string[] = []
  const directories = new Map<string, string>()
  const visit = async (path: string, left: number): Promise<void> => {
    const found = directoryAt(root, path)
    if (found === undefined) return
    directories.set(path, stampOf(found))
    if (directories.size % 128 === 1) await nextTurn()
    // Two links are its name and its own `.`: no directory in it, so all that can matter is a file called `.git`.
    if (found.nlink === 2) {
      if (path !== '' && unlessMissingSync(() => lstatSync(at(root, `${path}/.git`)))) gits.push(`${path}/.git`)
      return
    }
    for (const entry of readdirSync(at(root, path), { withFileTypes: true, encoding: 'latin1' })) {
      const inner = path === '' ? entry.name : `${path}/${entry.name}`
      if (entry.name === '.git') {
        if (path !== '') gits.push(inner)
      } else if (entry.isDirectory() && left > 0) {
        await visit(inner, Math.min(left - 1, regenerable.has(shownPath(entry.name)) ? regenerableDepth - 1 : Infinity))
      }
    }
  }
  await visit('', Infinity)
  return { gits, directories }
}

/** No entry has come, gone or been renamed in any of them since. Not: no file was written to. */
export const sameEntries = (root: string, directories: ReadonlyMap<string, string>): boolean => {
  for (const [path, stamp] of directories) {
    const found = directoryAt(root, path)
    if (found === undefined || stampOf(found) !== stamp) return false
  }
  return true
}

const at = (root: string, path: string): Buffer => (path === '' ? Buffer.from(root) : bytesBelow(root, path))

const directoryAt = (root: string, path: string): Stats | undefined => {
  const found = unlessMissingSync(() => lstatSync(at(root, path)))
  return found?.isDirectory() === true ? found : undefined
}

/** A rename of the tree itself changes no directory's own time. */
const stampOf = ({ ino, mtimeMs }: Stats): string => `${ino},${mtimeMs}`

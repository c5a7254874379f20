import { toRaw } from '../domain/text/raw-path.ts'
import type { Git, Tree } from './door.ts'
import { splitNul } from './tree-path.ts'

/** Every path in the tree's index. */
export const trackedFiles = async (git: Git, tree: Tree, signal?: AbortSignal): Promise<ReadonlySet<string>> => {
  const { stdout } = await git.run({
    operation: 'list tracked files',
    at: tree,
    args: ['ls-files', '--cached', '-z', '--full-name'],
    ...(signal === undefined ? {} : { signal }),
  })
  return new Set(stdout.split('\0').filter((path) => path !== ''))
}

/**
 * Raw paths that a checkout makes executable; undefined where git itself checks file modes. With `core.fileMode` off it
 * doesn't, and a changed mode isn't a change.
 */
export const executableFiles = async (git: Git, tree: Tree): Promise<ReadonlySet<string> | undefined> => {
  const settings = (await git.config(tree)).filter(({ key }) => key === 'core.filemode')
  if (settings.every(({ value }) => value === 'true')) return undefined
  const args = ['ls-files', '--stage', '-z', '--full-name']
  const { stdoutBytes } = await git.run({ operation: 'ls-files', at: tree, args })
  const records = splitNul(stdoutBytes).map(toRaw)
  return new Set(records.filter((one) => one.startsWith('100755 ')).map((one) => one.slice(one.indexOf('\t') + 1)))
}

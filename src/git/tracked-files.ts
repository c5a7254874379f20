import type { Git, Tree } from './door.ts'

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

import { copyFileSync, lstatSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CallOptions, Git, Tree } from './door.ts'
import { joinTreePath, splitNul, treePath, type TreePath } from './tree-path.ts'

/**
 * Edits that `git status` does not show because someone set `assume-unchanged` or `skip-worktree` on the file. They are
 * compared in a private copy of the index with the flags cleared; the worktree's own index is not touched.
 */
export const hiddenEdits = async (
  git: Git,
  tree: Tree,
  { signal, temporary = tmpdir() }: CallOptions & { temporary?: string } = {},
): Promise<TreePath[]> => {
  const flagged = (await flaggedPaths(git, tree, signal)).filter((entry) => !isAbsentFromSparse(tree, entry))
  if (flagged.length === 0) return []
  const directory = mkdtempSync(join(temporary, 'coppice-index-'))
  try {
    const indexFile = join(directory, 'index')
    copyFileSync(join(tree.gitDir, 'index'), indexFile)
    return await reallyDifferent(git, tree, indexFile, flagged, signal)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

type Flagged = TreePath & { readonly skipWorktree: boolean }

/** `ls-files -v`: the tag in lower case means assume-unchanged, `S` (or `s`) means skip-worktree. */
const flaggedPaths = async (git: Git, tree: Tree, signal: AbortSignal | undefined): Promise<Flagged[]> => {
  const args = ['ls-files', '-v', '-z', '--full-name']
  const { stdoutBytes } = await git.run({ operation: 'ls-files', at: tree, args, ...(signal && { signal }) })
  return splitNul(stdoutBytes).flatMap((record) => {
    const tag = String.fromCharCode(record[0] ?? 0)
    const skipWorktree = tag === 'S' || tag === 's'
    return skipWorktree || /[a-z]/.test(tag) ? [{ ...treePath(record.subarray(2)), skipWorktree }] : []
  })
}

/** In a sparse checkout most files are flagged and not there: that is how they should be, not a deletion. */
const isAbsentFromSparse = (tree: Tree, entry: Flagged): boolean =>
  entry.skipWorktree && lstatSync(joinTreePath(tree.path, entry), { throwIfNoEntry: false }) === undefined

const reallyDifferent = async (
  git: Git,
  tree: Tree,
  indexFile: string,
  flagged: readonly Flagged[],
  signal: AbortSignal | undefined,
): Promise<TreePath[]> => {
  const stdin = Buffer.concat(flagged.flatMap(({ bytes }) => [bytes, Buffer.from('\0')]))
  const common = { at: tree, indexFile, ...(signal && { signal }) }
  // One flag at a time: given both, git 2.39 applies only the last.
  for (const flag of ['--no-assume-unchanged', '--no-skip-worktree']) {
    await git.run({
      ...common,
      operation: 'update-index',
      args: ['update-index', flag, '-z', '--stdin'],
      stdin,
      locks: true,
    })
  }
  await git.run({
    ...common,
    operation: 'update-index',
    args: ['update-index', '-q', '--really-refresh'],
    ok: [0, 1],
    locks: true,
  })
  const args = ['diff-files', '-z', '--name-only', '--no-ext-diff', '--ignore-submodules=all']
  const { stdoutBytes } = await git.run({ ...common, operation: 'diff-files', args })
  const names = new Set(flagged.map(({ bytes }) => bytes.toString('latin1')))
  return splitNul(stdoutBytes)
    .filter((bytes) => names.has(bytes.toString('latin1')))
    .map(treePath)
}

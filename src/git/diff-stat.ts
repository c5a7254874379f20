import { AppError } from '../domain/errors.ts'
import { type Sha, toSha } from '../domain/names.ts'
import type { CallOptions, Git, Tree } from './door.ts'
import { splitNul } from './tree-path.ts'

/** One changed file; counts are undefined for a binary file. */
export type FileStat = {
  readonly path: string
  readonly added: number | undefined
  readonly removed: number | undefined
}

/** Overrides all configuration that could run a program or hide a line. */
const args = [
  ...'diff --numstat -z --no-renames --no-ext-diff --no-textconv --no-color'.split(' '),
  ...'--ignore-submodules=dirty --diff-algorithm=myers --end-of-options'.split(' '),
]

/** How the tracked files of a worktree differ from a commit, committed or not. */
export const diffStat = async (git: Git, tree: Tree, from: Sha, { signal }: CallOptions = {}): Promise<FileStat[]> => {
  const request = { operation: 'diff', at: tree, args: [...args, from, '--'], ...(signal && { signal }) }
  const { stdoutBytes } = await git.run(request)
  return splitNul(stdoutBytes).map((record) => {
    const [, added, removed, path] = /^(\d+|-)\t(\d+|-)\t(.+)$/s.exec(record.toString('utf8')) ?? []
    if (path === undefined) throw new AppError('git-failed', "couldn't parse the output of git diff")
    return { path, added: numberOf(added), removed: numberOf(removed) }
  })
}

const numberOf = (text: string | undefined): number | undefined =>
  text === undefined || text === '-' ? undefined : Number(text)

/** Where the worktree's HEAD forked from a commit's history; undefined when they are unrelated. */
export const forkPoint = async (
  git: Git,
  tree: Tree,
  commit: Sha,
  { signal }: CallOptions = {},
): Promise<Sha | undefined> => {
  const request = { operation: 'merge-base', at: tree, args: ['merge-base', 'HEAD', commit], ok: [0, 1] }
  const { stdout, exitCode } = await git.run({ ...request, ...(signal && { signal }) })
  return exitCode === 0 ? toSha(stdout.trim()) : undefined
}

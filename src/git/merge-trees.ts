import { join } from 'node:path'
import { AppError } from '../domain/errors.ts'
import { type Sha, toSha } from '../domain/names.ts'
import type { CallOptions, Git, Repo } from './door.ts'
import type { Setting } from './neutral.ts'

export type MergedTree =
  | { readonly clean: true; readonly tree: Sha }
  /** `paths`: those in conflict. */
  | { readonly clean: false; readonly paths: readonly string[] }

/** Merge `tip` into `into`. */
export type Merge = { readonly into: Sha; readonly tip: Sha }

/**
 * Computes each merge without touching a working tree, all in one process; results are in order. Both sides must share
 * history: otherwise git aborts the whole list.
 */
export const mergeTrees = async (
  git: Git,
  repo: Repo,
  merges: readonly Merge[],
  { signal }: CallOptions = {},
): Promise<MergedTree[]> => {
  if (merges.length === 0) return []
  const { stdout } = await git.run({
    operation: 'merge-tree',
    at: repo,
    args: ['merge-tree', '--write-tree', '--stdin', '--no-messages', '--name-only'],
    stdin: merges.map(({ into, tip }) => `${into} ${tip}\n`).join(''),
    settings,
    ...(signal && { signal }),
  })
  return parse(stdout, merges.length)
}

/**
 * Only comparing text proves anything: use no attributes of the user or a commit, and no default driver but git's own.
 * With `merge=union` or `merge=ours` a change that base never got would vanish.
 */
const settings: readonly Setting[] = [
  ['core.attributesFile', '/dev/null'],
  // A ref that doesn't exist: git 2.43 and newer then reads no attributes from commits.
  ['attr.tree', 'refs/coppice/no-attributes'],
  ['merge.renormalize', 'false'],
  ['merge.default', 'text'],
]

/** `1 NUL tree NUL NUL` for a clean merge; `0 NUL tree NUL (path NUL)* NUL` for one with conflicts. */
const parse = (stdout: string, count: number): MergedTree[] => {
  const fields = stdout.split('\0')
  const answers: MergedTree[] = []
  let at = 0
  while (answers.length < count) {
    const [clean, tree = ''] = fields.slice(at, at + 2)
    const from = at + 2
    if (clean !== '0' && clean !== '1') throw new AppError('git-failed', 'git merge-tree did not answer every question')
    at = from
    while (fields[at] !== '' && at < fields.length) at += 1
    answers.push(
      clean === '1'
        ? { clean: true, tree: toSha(tree) }
        : { clean: false, paths: [...new Set(fields.slice(from, at))] },
    )
    at += 1
  }
  return answers
}

/** The paths (latin1) for which `mergeTrees` would use a merge driver named by an attribute. */
export const pathsWithMergeDriver = async (
  git: Git,
  repo: Repo,
  paths: readonly string[],
  { signal }: CallOptions = {},
): Promise<string[]> => {
  const { stdoutBytes } = await git.run({
    operation: 'check-attr',
    // It requires a working tree and reads its attributes; `/` with a missing index has as few as merge-tree.
    at: { ...repo, gitDir: repo.commonDir, path: '/' },
    indexFile: join(repo.commonDir, 'no-such-index'),
    args: ['check-attr', '--stdin', '-z', 'merge'],
    stdin: Buffer.from(paths.map((path) => `${path}\0`).join(''), 'latin1'),
    settings,
    ...(signal && { signal }),
  })
  const fields = stdoutBytes.toString('latin1').split('\0')
  const found: string[] = []
  for (let i = 0; i + 2 < fields.length; i += 3) {
    if (fields[i + 2] !== 'unspecified' && fields[i + 2] !== 'set') found.push(fields[i] ?? '')
  }
  return found
}

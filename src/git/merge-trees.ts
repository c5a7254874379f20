import { join } from 'node:path'
import { AppError } from '../domain/errors.ts'
import { type Sha, toSha } from '../domain/names.ts'
import type { CallOptions, Git, Repo } from './door.ts'
import type { Setting } from './neutral.ts'

export type MergedTree = { readonly clean: true; readonly tree: Sha } | { readonly clean: false }

/**
 * Merges each tip into base without touching any working tree, all in one process. Every tip must share history with
 * base: git gives up on the whole list otherwise. The user's own attributes are left out: a `merge=ours` driver or
 * `merge=union` there would make a change vanish that base never got.
 */
export const mergeTrees = async (
  git: Git,
  repo: Repo,
  base: Sha,
  tips: readonly Sha[],
  { signal }: CallOptions = {},
): Promise<Map<Sha, MergedTree>> => {
  if (tips.length === 0) return new Map()
  const { stdout } = await git.run({
    operation: 'merge-tree',
    at: repo,
    args: ['merge-tree', '--write-tree', '--stdin', '--no-messages', '--name-only'],
    stdin: tips.map((tip) => `${base} ${tip}\n`).join(''),
    settings,
    ...(signal && { signal }),
  })
  return parse(stdout, tips)
}

/** Renormalising would make git look for attributes in the commits too. */
const settings: readonly Setting[] = [
  ['core.attributesFile', '/dev/null'],
  ['merge.renormalize', 'false'],
]

/** `1 NUL tree NUL NUL` for a clean merge; `0 NUL tree NUL (path NUL)* NUL` for one with conflicts. */
const parse = (stdout: string, tips: readonly Sha[]): Map<Sha, MergedTree> => {
  const fields = stdout.split('\0')
  const answers = new Map<Sha, MergedTree>()
  let at = 0
  for (const tip of tips) {
    const [clean, tree = ''] = fields.slice(at, at + 2)
    if (clean !== '0' && clean !== '1') throw new AppError('git-failed', 'git merge-tree did not answer every question')
    answers.set(tip, clean === '1' ? { clean: true, tree: toSha(tree) } : { clean: false })
    at += 2
    while (fields[at] !== '' && at < fields.length) at += 1
    at += 1
  }
  return answers
}

/** Of these paths (latin1), those for which an attribute names a merge driver, in the eyes of `mergeTrees`. */
export const pathsWithMergeDriver = async (
  git: Git,
  repo: Repo,
  paths: readonly string[],
  { signal }: CallOptions = {},
): Promise<string[]> => {
  const { stdoutBytes } = await git.run({
    operation: 'check-attr',
    // It insists on a working tree and reads its attributes; `/` with an index that is not there has as few as merge-tree.
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

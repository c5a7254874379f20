import type { Sha } from '../domain/names.ts'
import { toSha } from '../domain/names.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import type { CallOptions, Git, Repo, Tree } from './door.ts'
import { splitNul, treePath, type TreePath } from './tree-path.ts'

/** A place where another repository belongs, and the commit it should be at. */
export type Submodule = TreePath & { readonly sha: Sha }

/** The submodules of a worktree, from its index. */
export const listSubmodules = async (git: Git, tree: Tree, { signal }: CallOptions = {}): Promise<Submodule[]> => {
  const args = ['ls-files', '--stage', '-z', '--full-name']
  const { stdoutBytes } = await git.run({ operation: 'ls-files', at: tree, args, ...(signal && { signal }) })
  return gitlinks(stdoutBytes)
}

/** The submodules of a commit. */
export const submodulesOf = async (
  git: Git,
  repo: Repo,
  commit: Sha,
  { signal }: CallOptions = {},
): Promise<Submodule[]> => {
  const args = ['ls-tree', '-r', '-z', '--full-tree', commit]
  const { stdoutBytes } = await git.run({ operation: 'ls-tree', at: repo, args, ...(signal && { signal }) })
  return gitlinks(stdoutBytes)
}

/** `160000 <sha> 0 TAB path` in the index, `160000 commit <sha> TAB path` in a tree. */
const gitlinks = (output: Buffer): Submodule[] =>
  splitNul(output).flatMap((record) => {
    if (!record.subarray(0, 7).equals(gitlinkMode)) return []
    const tab = record.indexOf(0x09)
    const sha = record.subarray(7, tab).toString('utf8').replace('commit ', '').split(' ')[0] ?? ''
    return [{ ...treePath(record.subarray(tab + 1)), sha: toSha(sha) }]
  })

const gitlinkMode = Buffer.from('160000 ')

/** `--checkout`: the configuration's `submodule.<name>.update` may be `!any command`. */
export const initSubmodules = async (
  git: Git,
  tree: Tree,
  { signal, onSpawn }: CallOptions & { onSpawn?: (identity: ProcessIdentity) => void } = {},
): Promise<void> => {
  await git.run({
    operation: 'submodule update',
    at: tree,
    args: ['submodule', '--quiet', 'update', '--init', '--recursive', '--checkout'],
    network: true,
    locks: true,
    ...(onSpawn && { onSpawn }),
    ...(signal && { signal }),
  })
}

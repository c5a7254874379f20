import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isSha, type Sha } from '../domain/names.ts'
import type { Git, Tree } from './door.ts'
import { objectTypes, taggedObjects } from './named-objects.ts'
import { countUnreachable, unreachableAmong } from './unreachable.ts'

export type PrivateRef = { readonly name: string; readonly sha: Sha }

/** Per-worktree namespaces: git deletes their refs together with the worktree's record. */
const namespaces = ['refs/worktree', 'refs/bisect', 'refs/rewritten']

/** Refs that only this worktree has. Starts git only if there may be one. */
export const privateRefs = async (git: Git, tree: Tree): Promise<PrivateRef[]> => {
  if (![...namespaces, 'reftable'].some((name) => existsSync(join(tree.gitDir, name)))) return []
  // Not the type: git would fail on a ref whose object is missing.
  const args = ['for-each-ref', '--format=%(objectname) %(refname)', ...namespaces]
  const { stdout } = await git.run({ operation: 'for-each-ref', at: tree, args })
  return stdout.split('\n').flatMap((line) => {
    const [sha = ''] = line.split(' ', 1)
    return isSha(sha) ? [{ sha, name: line.slice(sha.length + 1) }] : []
  })
}

export type UnreferencedPrivateRef = PrivateRef & {
  /** How many of its commits no branch, tag or remote-tracking ref has; undefined if it isn't a commit. */
  readonly commits: number | undefined
}

/** Those that hold something no branch or tag does. */
export const unreferencedPrivateRefs = async (git: Git, tree: Tree): Promise<UnreferencedPrivateRef[]> => {
  const refs = await privateRefs(git, tree)
  if (refs.length === 0) return []
  const types = await objectTypes(
    git,
    tree,
    refs.map(({ sha }) => sha),
  )
  const tagged = await taggedObjects(git, tree)
  // Skip missing objects, and those that a tag has too.
  const untagged = refs.filter(({ sha }) => types.has(sha) && !tagged.has(sha))
  const isCommit = ({ sha }: PrivateRef): boolean => types.get(sha) === 'commit'
  const counts = await countEach(git, tree, [...new Set(untagged.filter(isCommit).map(({ sha }) => sha))])
  return untagged.flatMap((ref) => {
    const commits = isCommit(ref) ? (counts.get(ref.sha) ?? 0) : undefined
    return commits === 0 ? [] : [{ ...ref, commits }]
  })
}

/** A bisection may have thousands of refs: counted one by one only if they hold something, and only the first few. */
const countEach = async (git: Git, tree: Tree, shas: readonly Sha[]): Promise<ReadonlyMap<Sha, number>> => {
  const counts = new Map<Sha, number>()
  if (shas.length === 0) return counts
  const unreachable = new Set(await unreachableAmong(git, tree, shas))
  for (const sha of [...unreachable].slice(0, MAX_COUNTED)) counts.set(sha, await countUnreachable(git, tree, [sha]))
  for (const sha of [...unreachable].slice(MAX_COUNTED)) counts.set(sha, 1)
  return counts
}

/** Beyond this many refs, the number of commits no longer matters. */
const MAX_COUNTED = 20

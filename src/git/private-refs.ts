import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isSha, type Sha } from '../domain/names.ts'
import type { Git, Tree } from './door.ts'
import { objectTypes, taggedObjects } from './named-objects.ts'
import { countUnreachable } from './unreachable.ts'

export type PrivateRef = { readonly name: string; readonly sha: Sha }

/** Namespaces that each worktree has for itself: git deletes what is in them together with its record. */
const namespaces = ['refs/worktree', 'refs/bisect', 'refs/rewritten']

/** Refs that only this worktree has. Starts git only where there may be one. */
export const privateRefs = async (git: Git, tree: Tree): Promise<PrivateRef[]> => {
  if (![...namespaces, 'reftable'].some((name) => existsSync(join(tree.gitDir, name)))) return []
  // Not the type: over a ref whose object is gone git would fail.
  const args = ['for-each-ref', '--format=%(objectname) %(refname)', ...namespaces]
  const { stdout } = await git.run({ operation: 'for-each-ref', at: tree, args })
  return stdout.split('\n').flatMap((line) => {
    const [sha = ''] = line.split(' ', 1)
    return isSha(sha) ? [{ sha, name: line.slice(sha.length + 1) }] : []
  })
}

export type OnlyPrivate = PrivateRef & {
  /** How many commits no branch, tag or remote-tracking ref has; undefined for what is not a commit. */
  readonly commits: number | undefined
}

/** Those that hold something that no branch or tag does. */
export const privateRefsOnlyHere = async (git: Git, tree: Tree): Promise<OnlyPrivate[]> => {
  const refs = await privateRefs(git, tree)
  if (refs.length === 0) return []
  const types = await objectTypes(
    git,
    tree,
    refs.map(({ sha }) => sha),
  )
  const tagged = await taggedObjects(git, tree)
  const found: OnlyPrivate[] = []
  for (const ref of refs) {
    const type = types.get(ref.sha)
    // The object is gone already, or a tag has it as well.
    if (type === undefined || tagged.has(ref.sha)) continue
    const commits = type === 'commit' ? await countUnreachable(git, tree, [ref.sha]) : undefined
    if (commits !== 0) found.push({ ...ref, commits })
  }
  return found
}

import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import { toAppError } from '../../../domain/errors.ts'
import { isSha, type Sha } from '../../../domain/names.ts'
import type { Unreachable } from '../../../domain/removal/unreachable.ts'
import type { Tree } from '../../../domain/tree.ts'
import { readAdminDirs } from '../../../git/admin-dir.ts'
import { headReflog, lastReflogEntry } from '../../../git/reflog.ts'
import { listRefs, type Ref } from '../../../git/refs.ts'
import { askRemoteRefs } from '../../../git/remote-refs.ts'
import { existingObjects, stashes } from '../../../git/unreachable.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import type { IsolationContext } from '../../context.ts'
import type { CheckoutKind } from '../checkout/kind.ts'
import { unreachableCommits } from '../checkout/look/unreachable.ts'
import { givenTo, pinsOf } from './refs.ts'
import { refsOfClone } from './tips.ts'

/**
 * What neither the repository nor a remote has once the clone is gone. Commits of a branch deleted from the clone are
 * in its reflog, and a restore point keeps those.
 */
export const unreachable: CheckoutKind['unreachable'] = async (context, codebase, environment, tree) => {
  const worktrees = (await readAdminDirs(tree.commonDir)).map((one) => ({
    path: one.worktreePath,
    isLocked: one.lockReason !== undefined,
  }))
  return [
    // Its own refs, including those private to a worktree, are checked below.
    ...(await unreachableCommits(context, tree)).filter(({ kind }) => kind !== 'own-ref'),
    ...described(await onlyInClone(context, codebase, environment, tree), codebase, tree),
    ...(worktrees.length > 0 ? [{ kind: 'clone-worktrees', path: tree.path, worktrees } as const] : []),
  ]
}

/** A name in the clone: a ref, or an older stash, which has no ref. */
type Named = Pick<Ref, 'name' | 'sha' | 'committerDate'>

/**
 * Only the branch that a clone was created on is added to the repository: a name chosen by an agent could shadow
 * another there. What other names lead to must already be in the repository or on its remote.
 */
const onlyInClone = async (
  context: Pick<IsolationContext, 'git' | 'log'>,
  codebase: Codebase,
  { id, branch }: IsolatedEnvironment,
  tree: Tree,
): Promise<Named[]> => {
  const { git } = context
  const refs = await refsOfClone(git, tree)
  const own = refs.find(({ name }) => name === `refs/heads/${branch}`)
  // Our own refs expire.
  const theirs = (await listRefs(git, repoOf(codebase), ['refs/'])).filter(
    ({ name }) => !name.startsWith('refs/coppice/'),
  )
  // It began with these: base may have been rewritten since.
  const given = givenTo(id, await pinsOf(context, repoOf(codebase), id))
  const held = new Set([...theirs, ...given, ...(own === undefined ? [] : [own])].map(({ sha }) => sha))
  const others: Named[] = refs.filter((ref) => ref !== own && ref.target === undefined)
  const stashed = refs.some(({ name }) => name === 'refs/stash') ? await olderStashes(context, tree) : []
  const lost = await notHeld(context, tree, [...others, ...stashed], held)
  if (lost.length === 0 || codebase.remote === undefined) return lost
  // A clone's remote-tracking refs may be of branches since deleted there.
  const onRemote = await shasOnRemote(context, codebase, codebase.remote)
  return withoutFetched(tree, await notHeld(context, tree, lost, new Set([...held, ...onRemote])))
}

/** More are not worth the look: then all of them count. */
const maxTracking = 1_000

/**
 * Other people's branches come with every fetch, and are later deleted or rewritten on the remote: these were never the
 * clone's. What was pushed from it or checked out in it was.
 */
const withoutFetched = async (tree: Tree, names: readonly Named[]): Promise<Named[]> => {
  const tracking = names.filter(({ name }) => name.startsWith('refs/remotes/'))
  if (tracking.length === 0 || tracking.length > maxTracking) return [...names]
  const visited = new Set((await headReflog(tree.gitDir)).map(({ to }) => to))
  const fetched = new Set<Named>()
  for (const one of tracking) {
    const last = await lastReflogEntry(tree, one.name)
    const isFetched = last?.to === one.sha && /^(?:fetch|pull)\b/.test(last.message)
    if (isFetched && !visited.has(one.sha)) fetched.add(one)
  }
  return names.filter((one) => !fetched.has(one))
}

const olderStashes = async ({ git }: Pick<IsolationContext, 'git'>, tree: Tree): Promise<Named[]> =>
  (await stashes(git, tree))
    .filter(isSha)
    .map((sha, i) => ({ name: `stash@{${i}}`, sha, committerDate: 0 }))
    .slice(1)

/** Those that `held` doesn't reach. Non-commits must be in it themselves. */
const notHeld = async (
  { git }: Pick<IsolationContext, 'git'>,
  tree: Tree,
  names: readonly Named[],
  held: ReadonlySet<Sha>,
): Promise<Named[]> => {
  const open = names.filter(({ sha }) => !held.has(sha))
  const commits = open.filter(({ committerDate }) => committerDate !== undefined).map(({ sha }) => sha)
  if (commits.length === 0) return open
  const known = await existingObjects(git, tree, [...held])
  const stdin = [...commits, ...[...known].map((sha) => `^${sha}`)].map((line) => `${line}\n`).join('')
  const { stdout } = await git.run({ operation: 'rev-list', at: tree, args: ['rev-list', '--stdin'], stdin })
  const lost = new Set(stdout.split('\n'))
  return open.filter(({ sha, committerDate }) => committerDate === undefined || lost.has(sha))
}

/** A remote that doesn't answer counts as having nothing. */
const shasOnRemote = async (
  { git, log }: Pick<IsolationContext, 'git' | 'log'>,
  codebase: Codebase,
  remote: string,
): Promise<Sha[]> => {
  try {
    return [...(await askRemoteRefs(git, repoOf(codebase), remote)).values()]
  } catch (error) {
    log.warn('a remote did not say what it has', { codebase: codebase.name, error: toAppError(error).message })
    return []
  }
}

/** An agent can make thousands of refs: nobody reads more than these. */
const mostNamed = 10

const described = (lost: readonly Named[], { repoPath: repository }: Codebase, { path }: Tree): Unreachable[] => {
  const named = lost.slice(0, mostNamed).map(({ name, sha }): Unreachable => {
    const source = name.startsWith('refs/') ? name : sha
    return { kind: 'clone-ref', ref: name, source, path, repository }
  })
  const more = lost.length - named.length
  return more > 0 ? [...named, { kind: 'more-clone-refs', count: more, path, repository }] : named
}

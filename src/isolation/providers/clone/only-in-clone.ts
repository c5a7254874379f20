import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import { toAppError } from '../../../domain/errors.ts'
import { isSha, type Sha } from '../../../domain/names.ts'
import type { Unreachable } from '../../../domain/removal/unreachable.ts'
import type { Tree } from '../../../domain/tree.ts'
import { readAdminDirs } from '../../../git/admin-dir.ts'
import { commitsOf } from '../../../git/named-objects.ts'
import { historyOutside } from '../../../git/reachable.ts'
import { branchReflog, headReflog, lastReflogEntry } from '../../../git/reflog.ts'
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
  const held = new Set([...theirs, ...(own === undefined ? [] : [own])].map(({ sha }) => sha))
  const others: Named[] = refs.filter((ref) => ref !== own && ref.target === undefined)
  const stashed = refs.some(({ name }) => name === 'refs/stash') ? await olderStashes(context, tree) : []
  const found = await notHeld(context, tree, [...others, ...stashed], held)
  if (found.length === 0) return []
  // It began with these: base may have been rewritten since.
  const given = givenTo(id, await pinsOf(context, repoOf(codebase), id)).map(({ sha }) => sha)
  const notHere = [
    ...found.filter((one) => !isTracking(one)),
    ...(await notHeld(context, tree, found.filter(isTracking), new Set([...held, ...given]))),
  ]
  if (notHere.length === 0) return []
  // A clone's remote-tracking refs may be of branches since deleted there.
  const onRemote = await refsOnRemote(context, codebase)
  const everywhere = new Set([...held, ...onRemote.values()])
  const nowhere = onRemote.size === 0 ? notHere : await notHeld(context, tree, notHere, everywhere)
  const left = await withoutMovedTags(context, tree, nowhere, { onRemote, held: everywhere })
  return withoutFetched(context, tree, left, {
    remote: codebase.remote,
    branch,
    held: new Set([...everywhere, ...given]),
  })
}

const isTracking = ({ name }: Named): boolean => name.startsWith('refs/remotes/')

/**
 * A tag such as `nightly` is moved on the remote every day: a clone that fetched it has an older one, of a commit that
 * is held elsewhere.
 */
const withoutMovedTags = async (
  context: Pick<IsolationContext, 'git'>,
  tree: Tree,
  names: readonly Named[],
  { onRemote, held }: { readonly onRemote: ReadonlyMap<string, Sha>; readonly held: ReadonlySet<Sha> },
): Promise<Named[]> => {
  const tags = names.filter(
    ({ name, committerDate }) => name.startsWith('refs/tags/') && committerDate === undefined && onRemote.has(name),
  )
  const targets = await commitsOf(
    context.git,
    tree,
    tags.map(({ sha }) => sha),
  )
  const tagged = tags.flatMap((tag, i) => {
    const sha = targets[i]
    return sha === undefined ? [] : [{ tag, name: tag.name, sha, committerDate: 0 }]
  })
  const open = new Set((await notHeld(context, tree, tagged, held)).map(({ name }) => name))
  const moved = new Set(tagged.filter(({ name }) => !open.has(name)).map(({ tag }) => tag))
  return names.filter((one) => !moved.has(one))
}

/** More are not worth the look: then all of them count. */
const maxTracking = 1_000

type Fetched = { readonly remote: string | undefined; readonly branch: string; readonly held: ReadonlySet<Sha> }

/**
 * Other people's branches come with every fetch, and are later deleted or rewritten on the remote: these were never the
 * clone's, unless they contain commits that were checked out or made in it. Its own branch, as it was pushed before it
 * was rewritten, is in the branch's reflog.
 */
const withoutFetched = async (
  context: Pick<IsolationContext, 'git'>,
  tree: Tree,
  names: readonly Named[],
  { remote, branch, held }: Fetched,
): Promise<Named[]> => {
  if (remote === undefined) return [...names]
  const tracking = names.filter(({ name }) => name.startsWith(`refs/remotes/${remote}/`))
  if (tracking.length === 0 || tracking.length > maxTracking) return [...names]
  const own = new Set((await branchReflog(tree, branch)).map(({ to }) => to))
  const pushed = tracking.filter(({ name, sha }) => name === `refs/remotes/${remote}/${branch}` && own.has(sha))
  const fetched: Named[] = []
  for (const one of tracking) {
    const last = await lastReflogEntry(tree, one.name)
    if (last?.to === one.sha && /^(?:fetch|pull)\b/.test(last.message)) fetched.push(one)
  }
  const visited = new Set((await headReflog(tree.gitDir)).map(({ to }) => to))
  const isOwn = (await commitsBeyond(context, tree, fetched, held)).some((sha) => visited.has(sha))
  const exempt = new Set([...pushed, ...(isOwn ? [] : fetched)])
  return names.filter((one) => !exempt.has(one))
}

const olderStashes = async ({ git }: Pick<IsolationContext, 'git'>, tree: Tree): Promise<Named[]> =>
  (await stashes(git, tree))
    .filter(isSha)
    .map((sha, i) => ({ name: `stash@{${i}}`, sha, committerDate: 0 }))
    .slice(1)

/** Those that `held` doesn't reach. Non-commits must be in it themselves. */
const notHeld = async (
  context: Pick<IsolationContext, 'git'>,
  tree: Tree,
  names: readonly Named[],
  held: ReadonlySet<Sha>,
): Promise<Named[]> => {
  const open = names.filter(({ sha }) => !held.has(sha))
  const lost = new Set(await commitsBeyond(context, tree, open, held))
  return open.filter(({ sha, committerDate }) => committerDate === undefined || lost.has(sha))
}

/** The commits that these lead to and `held` doesn't. */
const commitsBeyond = async (
  { git }: Pick<IsolationContext, 'git'>,
  tree: Tree,
  names: readonly Named[],
  held: ReadonlySet<Sha>,
): Promise<Sha[]> => {
  const commits = names.filter(({ committerDate }) => committerDate !== undefined).map(({ sha }) => sha)
  if (commits.length === 0) return []
  return historyOutside(git, tree, commits, [...(await existingObjects(git, tree, [...held]))])
}

/** A remote that doesn't answer counts as having nothing. */
const refsOnRemote = async (
  { git, log }: Pick<IsolationContext, 'git' | 'log'>,
  codebase: Codebase,
): Promise<ReadonlyMap<string, Sha>> => {
  if (codebase.remote === undefined) return new Map()
  try {
    return await askRemoteRefs(git, repoOf(codebase), codebase.remote)
  } catch (error) {
    log.warn('a remote did not say what it has', { codebase: codebase.name, error: toAppError(error).message })
    return new Map()
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

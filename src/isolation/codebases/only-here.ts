import type { Codebase } from '../../domain/environment.ts'
import { toAppError } from '../../domain/errors.ts'
import { type Sha, toEnvironmentId } from '../../domain/names.ts'
import { shownPath } from '../../domain/text/raw-path.ts'
import { counted } from '../../domain/text/words.ts'
import { readAdminDirs } from '../../git/admin-dir.ts'
import { fetchRemote } from '../../git/fetch.ts'
import { listRefs, type Ref } from '../../git/refs.ts'
import { askRemoteRefs } from '../../git/remote-refs.ts'
import { commitsNotOn, existingObjects } from '../../git/unreachable.ts'
import { mountsInside } from '../../process/files/mounts.ts'
import { filesOnlyHere } from './files-only-here.ts'
import type { IsolationContext } from '../context.ts'
import { repoOf } from './repo-of.ts'
import { walk } from '../walk.ts'

/**
 * What would be lost with a clone of ours. Asks the remote what it has now: a tracking ref of a branch deleted there
 * (we never prune) may be the last to hold somebody's commit. If something can't be determined, that is a reason to
 * keep the clone.
 */
export const onlyHere = async (
  context: Pick<IsolationContext, 'git' | 'clock' | 'log' | 'store'>,
  codebase: Codebase,
): Promise<string[]> => {
  const repo = repoOf(codebase)
  const refs = await listRefs(context.git, repo, ['refs/'])
  const points = refs.filter(({ name }) => name.startsWith('refs/coppice/restore/'))
  const worktrees = await readAdminDirs(repo.commonDir)
  return [
    ...(await notOnRemote(context, codebase, refs)),
    ...(points.length > 0 ? [counted(points.length, 'restore point')] : []),
    ...worktrees.map(({ worktreePath, name }) => `a worktree at ${worktreePath ?? name}`),
    ...(await borrowers(context, refs)),
    ...(await insideClone(context, codebase.repoPath)),
  ]
}

/** Untracked environments that borrow its objects: without it their history is unreadable. */
const borrowers = async ({ store }: Pick<IsolationContext, 'store'>, refs: readonly Ref[]): Promise<string[]> => {
  const ids = new Set(refs.flatMap(({ name }) => /^refs\/coppice\/clone\/([^/]+)\//.exec(name)?.[1] ?? []))
  const paths = await Promise.all([...ids].map(async (id) => (await store.environments.get(toEnvironmentId(id)))?.path))
  return paths.map((path) => `objects that a clone borrows${path === undefined ? '' : `: ${path}`}`)
}

/** A mount, a repository or files that somebody put in the clone's directory. */
const insideClone = async (context: Pick<IsolationContext, 'clock'>, path: string): Promise<string[]> => {
  const mounts = await mountsInside([path])
  if (mounts.length > 0) return mounts.map((mount) => `a mount inside it: ${mount.path} (${mount.what})`)
  const { gits, gitDirectories } = await walk(path, context.clock())
  return [
    ...[...gits.map((git) => git.path), ...gitDirectories].map(
      (inner) => `a repository inside it: ${shownPath(inner)}`,
    ),
    ...(await filesInside(path)),
  ]
}

const mostNamed = 3

const filesInside = async (path: string): Promise<string[]> => {
  const files = (await filesOnlyHere(path)).sort()
  if (files.length === 0) return []
  const named = files.slice(0, mostNamed).map(shownPath).join(', ')
  const more = files.length > mostNamed ? ` and ${files.length - mostNamed} more` : ''
  return [`files that only it has: ${named}${more}`]
}

const notOnRemote = async (
  context: Pick<IsolationContext, 'git' | 'log'>,
  codebase: Codebase,
  refs: readonly Ref[],
): Promise<string[]> => {
  const { remote } = codebase
  try {
    const there =
      remote === undefined ? new Map<string, Sha>() : await askRemoteRefs(context.git, repoOf(codebase), remote)
    if (remote !== undefined) await fetchUnknown(context, codebase, remote, there)
    const commits = await commitsNotOn(context.git, repoOf(codebase), [...there.values()], countedByRef)
    return [
      ...(commits > 0 ? [`${counted(commits, 'commit')} that the remote does not have`] : []),
      ...refsNotOn(there, refs),
    ]
  } catch (error) {
    context.log.warn('a clone is kept, as it could not be compared with its remote', { codebase: codebase.name, error })
    return [`couldn't find out what only it has: ${toAppError(error).message}`]
  }
}

/** More would not fit on a command line; not fetching only makes us keep more. */
const mostFetched = 200

/** A branch merged there may be in the history of a commit that we don't have yet. Moves no ref of ours. */
const fetchUnknown = async (
  { git }: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  remote: string,
  there: ReadonlyMap<string, Sha>,
): Promise<void> => {
  const here = await existingObjects(git, repoOf(codebase), [...there.values()])
  const unknown = [...there].filter(([name, sha]) => name.startsWith('refs/heads/') && !here.has(sha))
  if (unknown.length === 0 || unknown.length > mostFetched) return
  await fetchRemote(git, repoOf(codebase), { remote, refspecs: unknown.map(([name]) => name) })
}

/** Compared as refs: all worktrees share one stash, and tags and notes may never have been pushed. */
const countedByRef = ['refs/stash', 'refs/notes/*', 'refs/coppice/restore/*']

/** Branches are compared by commits, not by name. */
const refsNotOn = (there: ReadonlyMap<string, Sha>, refs: readonly Ref[]): string[] => {
  const own = refs.filter(({ name }) => !/^refs\/(?:heads|remotes|coppice)\//.test(name))
  const kept = own.filter(({ name, sha }) => there.get(name) !== sha)
  return [...Map.groupBy(kept, ({ name }) => kindOf(name))].map(([kind, { length }]) =>
    kind === 'stash' ? 'a stash' : `${counted(length, kind)} that the remote does not have`,
  )
}

const kindOf = (name: string): string => {
  if (name === 'refs/stash') return 'stash'
  if (name.startsWith('refs/tags/')) return 'tag'
  return name.startsWith('refs/notes/') ? 'ref of notes' : 'ref'
}

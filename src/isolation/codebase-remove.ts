import { rename } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Codebase } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import { readAdminDirs } from '../git/admin-dir.ts'
import type { Git } from '../git/door.ts'
import { listRefs, type Ref } from '../git/refs.ts'
import { addressOf } from '../git/remote.ts'
import { countUnreachable } from '../git/unreachable.ts'
import type { Spare } from '../store/store.ts'
import { freshen } from './base.ts'
import { baseAndConfig } from './base-and-config.ts'
import { deleted, reposDirectory } from './codebase-clone.ts'
import { type KeptDirectory, releaseCodebase } from './codebase-release.ts'
import type { IsolationContext } from './context.ts'
import { locked } from './locked.ts'
import { settleInterrupted } from './reconcile.ts'
import { repositoryGone, repositoryState } from './repository-place.ts'
import { scriptsDigest } from './trust.ts'
import { repoOf } from './repo-of.ts'
import { undoMaking } from './worktree/undo.ts'

export type Trusted = {
  readonly codebase: Codebase
  readonly setup: readonly string[]
  readonly teardown: readonly string[]
}

/** Approves the repository's own commands as the base commit has them now; any change asks again. */
export const trustCodebase = async (context: IsolationContext, codebase: Codebase): Promise<Trusted> => {
  await freshen(context, codebase, { maxAgeMs: context.settings.fetchFreshSeconds * 1000 })
  const { config } = await baseAndConfig(context, codebase)
  await context.store.codebases.update(codebase.id, { trustedConfig: scriptsDigest(config) })
  return { codebase, setup: config.setup, teardown: config.teardown }
}

export type CodebaseRemoved = {
  readonly codebase: Codebase
  /** The clone that we had made went with it. */
  readonly cloneDeleted: boolean
  /** Why our clone stays on disk: it has what nothing else has. */
  readonly cloneKept: readonly string[]
  readonly restorePoints: number
  /** Set when the repository was gone: the directories of its worktrees, which stay. */
  readonly released?: readonly KeptDirectory[]
}

/**
 * Stops tracking a repository. Refused while environments live. A repository of the user's is not touched; a clone of
 * ours goes unless it holds the only copy of something, and then registering it again finds everything as it was. One
 * whose repository is gone releases its environments; `force` says so of one that cannot be seen.
 */
export const removeCodebase = async (
  context: IsolationContext,
  codebase: Codebase,
  { force = false }: { readonly force?: boolean } = {},
): Promise<CodebaseRemoved> => {
  const found = repositoryState(codebase)
  if (found.state === 'unknown' && !force) throw repositoryGone(codebase, found)
  if (found.state !== 'there') {
    const restorePoints = (await context.store.restorePoints.list(codebase.id)).length
    const released = await releaseCodebase(context, codebase)
    return { codebase, cloneDeleted: false, cloneKept: [], restorePoints, released }
  }
  const live = await context.store.environments.live(codebase.id)
  if (live.length > 0)
    throw inUse(
      codebase,
      live.map(({ branch }) => branch),
    )
  const restorePoints = (await context.store.restorePoints.list(codebase.id)).length
  await settleInterrupted(context, codebase)
  return locked(context, codebase, `letting go of ${codebase.name}`, async () => {
    for (const spare of await context.store.spares.list(codebase.id)) await discardSpare(context, codebase, spare)
    const cloneKept = codebase.cloned ? await onlyHere(context, codebase) : []
    // The row first: it is refused when an environment appeared meanwhile, and then nothing has been deleted.
    await context.store.codebases.remove(codebase.id)
    const cloneDeleted = codebase.cloned && cloneKept.length === 0
    if (cloneDeleted) await deleteClone(context, codebase)
    return { codebase, cloneDeleted, cloneKept, restorePoints }
  })
}

const inUse = ({ name }: Codebase, branches: readonly string[]): AppError => {
  const shown = branches.slice(0, 3).join(', ')
  const more = branches.length > 3 ? ` and ${branches.length - 3} more` : ''
  return new AppError('codebase-in-use', `${name} still has environments: ${shown}${more}`, {
    remedy: `remove them first: coppice worktree list --codebase ${name}`,
  })
}

/** The same way back as that of a spare whose making was interrupted: reconciliation can finish it after a crash. */
const discardSpare = async (context: IsolationContext, codebase: Codebase, spare: Spare): Promise<void> => {
  if (spare.host !== context.host) return
  const id = context.ids()
  await context.store.transaction(async (store) => {
    if (!(await store.spares.claim(spare.id))) return
    await store.journal.begin({
      id,
      host: context.host,
      codebaseId: codebase.id,
      environmentId: undefined,
      kind: 'spare',
      step: 'discarding',
      data: {
        path: spare.path,
        leaf: basename(spare.path),
        branch: '',
        branchCreated: false,
        start: spare.sha,
        adminNamesBefore: [],
        spareId: spare.id,
      },
      holder: context.self,
      child: undefined,
      startedAt: context.clock(),
    })
  })
  const undone = await undoMaking(context, codebase, id, 'after-crash')
  if (undone.outcome === 'left') throw new AppError('busy', `a spare of ${codebase.name} is in use: ${undone.detail}`)
}

/** What would be lost with the clone. */
const onlyHere = async (context: IsolationContext, codebase: Codebase): Promise<string[]> => {
  const repo = repoOf(codebase)
  const refs = await listRefs(context.git, repo, ['refs'])
  const points = refs.filter(({ name }) => name.startsWith('refs/coppice/restore/'))
  const commits = await countUnreachable(context.git, repo, ['--branches'])
  const worktrees = await readAdminDirs(repo.commonDir)
  return [
    ...(commits > 0 ? [`${commits} ${commits === 1 ? 'commit' : 'commits'} that the remote does not have`] : []),
    ...(await refsOnlyHere(context, codebase, refs)),
    ...(points.length > 0 ? [`${points.length} restore ${points.length === 1 ? 'point' : 'points'}`] : []),
    ...worktrees.map(({ worktreePath, name }) => `a worktree at ${worktreePath ?? name}`),
  ]
}

/** The stash is one for all worktrees; tags and notes may never have been pushed. Branches are counted by their commits. */
const refsOnlyHere = async ({ git }: IsolationContext, codebase: Codebase, refs: readonly Ref[]): Promise<string[]> => {
  const own = refs.filter(({ name }) => !/^refs\/(?:heads|remotes|coppice)\//.test(name))
  if (own.length === 0) return []
  const remote = await remoteRefs(git, codebase)
  const kept = own.filter(({ name, sha }) => remote?.get(name) !== sha)
  const kinds = Map.groupBy(kept, ({ name }) => kindOf(name))
  const why = remote === undefined ? 'that cannot be compared with the remote now' : 'that the remote does not have'
  return [...kinds].map(([kind, { length }]) =>
    kind === 'stash' ? 'a stash' : `${length} ${length === 1 ? kind : `${kind}s`} ${why}`,
  )
}

const kindOf = (name: string): string => {
  if (name === 'refs/stash') return 'stash'
  if (name.startsWith('refs/tags/')) return 'tag'
  return name.startsWith('refs/notes/') ? 'ref of notes' : 'ref'
}

/** What the remote has now, by name; undefined when it does not answer, which is no reason to delete anything. */
const remoteRefs = async (git: Git, codebase: Codebase): Promise<ReadonlyMap<string, string> | undefined> => {
  if (codebase.remote === undefined) return new Map()
  const repo = repoOf(codebase)
  const { name, settings } = await addressOf(git, repo, { name: codebase.remote })
  try {
    const { stdout } = await git.run({
      operation: 'ls-remote',
      at: repo,
      args: ['ls-remote', '--refs', '--upload-pack=git-upload-pack', '--end-of-options', name],
      settings,
      network: true,
      timeoutMs: 60_000,
    })
    const lines = stdout.split('\n').filter((line) => line !== '')
    return new Map(lines.map((line) => line.split('\t')).map(([sha = '', ref = '']) => [ref, sha]))
  } catch {
    return undefined
  }
}

/** Out of its place by one rename, so that a crash never leaves half a repository there. */
const deleteClone = async (context: IsolationContext, codebase: Codebase): Promise<void> => {
  if (dirname(codebase.repoPath) !== reposDirectory(context)) return
  const gone = join(reposDirectory(context), deleted + context.ids())
  await rename(codebase.repoPath, gone)
  context.reap([gone])
}

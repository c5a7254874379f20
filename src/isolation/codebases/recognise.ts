import { createHash } from 'node:crypto'
import type { Codebase } from '../../domain/environment.ts'
import { isAppError, toAppError } from '../../domain/errors.ts'
import { type CodebaseId, toCodebaseId, toRepoPath } from '../../domain/names.ts'
import { listRefs } from '../../git/refs.ts'
import { readRepositoryIds, writeRepositoryId } from '../../git/repository-id.ts'
import type { IsolationContext } from '../context.ts'
import { syncDirectory } from '../durable.ts'
import { locked } from '../lock/locked.ts'
import {
  assertRepository,
  inodeOf,
  isSameInode,
  realPlace,
  replacedPath,
  repositoryGone,
  repositoryState,
} from './repository-place.ts'
import { allProviders } from '../provider-of.ts'

export type RepositoryLocation = { readonly commonDir: string; readonly checkoutPath: string | undefined }

/**
 * The codebase of this repository: by its path or, if it was renamed or moved, by the id in its git directory. A copy
 * is a separate codebase. `called`: the user says which codebase it is, which decides if nothing else does.
 */
export const recogniseCodebase = async (
  context: IsolationContext,
  given: RepositoryLocation,
  called?: string,
): Promise<Codebase | undefined> => {
  const place = {
    commonDir: realPlace(given.commonDir),
    checkoutPath: given.checkoutPath === undefined ? undefined : realPlace(given.checkoutPath),
  }
  const { moved, atPath, same } = await lookUp(context, given, place, called)
  if (same !== undefined) return same
  if (moved !== undefined) return relocate(context, moved, place, atPath)
  return atPath && keepRecognisable(context, atPath)
}

/** The codebase that `recogniseCodebase` would return, without recording or changing anything. */
export const findCodebase = async (
  context: Pick<IsolationContext, 'store' | 'host'>,
  given: RepositoryLocation,
): Promise<Codebase | undefined> => {
  const { moved, atPath, same } = await lookUp(context, given, { ...given, commonDir: realPlace(given.commonDir) })
  return same ?? moved ?? atPath
}

type Recognised = {
  /** Registered, and now at this path. */
  readonly moved?: Codebase
  readonly atPath: Codebase | undefined
  /** The registered directory itself, seen at another path. */
  readonly same?: Codebase
}

const lookUp = async (
  context: Pick<IsolationContext, 'store' | 'host'>,
  given: RepositoryLocation,
  place: RepositoryLocation,
  called?: string,
): Promise<Recognised> => {
  const { store, host } = context
  const { commonDir } = place
  const atPath = await store.codebases.byRepoPath(host, commonDir)
  const id = readRepositoryIds(commonDir).get(host)
  if (id !== undefined && id === atPath?.id) return { atPath }
  const claimed =
    id === undefined ? await linkedFrom(context, given, place) : await store.codebases.get(toCodebaseId(id))
  if (claimed?.host === host && claimed.id !== atPath?.id) {
    if (isSameDirectory(claimed, commonDir)) return { atPath, same: claimed }
    if (isMovedTo(claimed, place, atPath, called)) return { atPath, moved: claimed }
  }
  return { atPath }
}

/** A repository we couldn't mark: the link at its old path leads to the registered directory. */
const linkedFrom = async (
  { store, host }: Pick<IsolationContext, 'store' | 'host'>,
  given: RepositoryLocation,
  { commonDir }: RepositoryLocation,
): Promise<Codebase | undefined> => {
  if (given.commonDir === commonDir) return undefined
  const known = await store.codebases.byRepoPath(host, given.commonDir)
  return isSameInode(known?.repoInode, inodeOf(commonDir)) ? known : undefined
}

/** The codebase as recorded after following a link left at its repository's old path. */
export const followLink = async (context: IsolationContext, known: Codebase): Promise<Codebase> =>
  realPlace(known.repoPath) === known.repoPath ? known : presentCodebase(context, known)

/** The codebase as it is now. Throws if its repository is gone or replaced by another. */
export const presentCodebase = async (context: IsolationContext, known: Codebase): Promise<Codebase> => {
  assertRepository(known)
  const { repoPath: commonDir, checkoutPath } = known
  const found = await recogniseCodebase(context, { commonDir, checkoutPath })
  if (found?.id === known.id) return found
  throw repositoryGone({ ...known, repoPath: replacedPath(known) }, { state: 'gone' })
}

/** Writes what recognises it later, unless it is there already. */
export const keepRecognisable = async (context: IsolationContext, codebase: Codebase): Promise<Codebase> => {
  const { store, host, log } = context
  const { id, repoPath } = codebase
  if (readRepositoryIds(repoPath).get(host) !== id) {
    try {
      await locked(context, codebase, 'marking the repository', async () => {
        writeRepositoryId(repoPath, host, id)
        await syncDirectory(repoPath)
      })
    } catch (error) {
      // It may be read-only: use it anyway; only a move can't be followed.
      if (isAppError(error)) throw error
      log.warn('the repository cannot be marked', { repoPath, error: toAppError(error).message })
    }
  }
  const repoInode = inodeOf(repoPath)
  if (repoInode === codebase.repoInode || repoInode === undefined) return codebase
  await store.codebases.update(id, { repoInode })
  return { ...codebase, repoInode }
}

/** The id for a newly registered repository: its previous one, if no other codebase has it. */
export const idForNew = async (
  context: Pick<IsolationContext, 'store' | 'git' | 'ids' | 'host'>,
  repoPath: string,
): Promise<CodebaseId> => {
  const { store, host } = context
  const kept = readRepositoryIds(repoPath).get(host)
  if (kept !== undefined && (await store.codebases.get(toCodebaseId(kept))) === undefined) return toCodebaseId(kept)
  const fromPlace = codebaseId(host, repoPath)
  const taken = (await store.codebases.get(fromPlace)) !== undefined
  return taken || (await hasPointsOfAnother(context, fromPlace, repoPath)) ? toCodebaseId(context.ids()) : fromPlace
}

/** For a repository without an id: registered again at the same path, it finds its restore points. */
export const codebaseId = (host: string, repoPath: string): CodebaseId =>
  toCodebaseId(createHash('sha256').update(`${host}\0${repoPath}`).digest('hex').slice(0, 32))

/** The points belong to a repository that was here before and was moved; it needs them there. */
const hasPointsOfAnother = async (
  { store, git }: Pick<IsolationContext, 'store' | 'git'>,
  id: CodebaseId,
  repoPath: string,
): Promise<boolean> => {
  const points = await store.restorePoints.list(id)
  if (points.length === 0) return false
  const refs = await listRefs(git, { commonDir: toRepoPath(repoPath) }, ['refs/coppice/restore/'])
  return !points.some(({ ref }) => refs.some(({ name }) => name === ref))
}

/** A bind mount shows one directory at two paths. */
const isSameDirectory = ({ repoPath }: Codebase, commonDir: string): boolean => {
  if (realPlace(repoPath) !== repoPath) return false
  const there = repositoryState({ repoPath, repoInode: undefined }).state === 'there'
  return there && inodeOf(repoPath) === inodeOf(commonDir)
}

/**
 * The id alone proves nothing: a copy has it, and an agent can write it. Either this is the very directory that was
 * registered and it has left its old path, or its old path is known to be empty.
 */
const isMovedTo = (
  claimed: Codebase,
  { commonDir }: RepositoryLocation,
  atPath: Codebase | undefined,
  called: string | undefined,
): boolean => {
  // A link at its old path leads here.
  if (claimed.repoPath !== commonDir && realPlace(claimed.repoPath) === commonDir) return atPath === undefined
  const old = repositoryState(claimed).state
  if (isSameInode(claimed.repoInode, inodeOf(commonDir))) {
    return old !== 'there' || !isSameInode(claimed.repoInode, inodeOf(claimed.repoPath))
  }
  if (atPath !== undefined) return false
  return old === 'gone' || (old === 'unknown' && called === claimed.name)
}

/** Worktrees first, then the record: after a crash in between it is recognised and moved again. */
const relocate = async (
  context: IsolationContext,
  from: Codebase,
  { commonDir, checkoutPath }: RepositoryLocation,
  displaced: Codebase | undefined,
): Promise<Codebase> => {
  const to: Codebase = { ...from, repoPath: commonDir, checkoutPath, repoInode: inodeOf(commonDir) }
  context.progress(`${from.name} was moved to ${checkoutPath ?? commonDir}: following it`)
  await locked(context, to, 'following a moved repository', async () => {
    for (const provider of await allProviders(context)) await provider.repositoryMoved(context, from, to)
    await context.store.transaction(async (store) => {
      // The repository that was here is elsewhere now, or gone.
      if (displaced !== undefined) {
        await store.codebases.update(displaced.id, { repoPath: replacedPath(displaced) })
      }
      const { repoPath, repoInode } = to
      await store.codebases.update(from.id, { repoPath, checkoutPath, repoInode })
    })
  })
  return keepRecognisable(context, to)
}

import { dirname } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import type { Notice } from '../domain/notice.ts'
import type { Store } from '../store/store.ts'
import type { IsolationContext } from './context.ts'
import { isInternal, managedRoot } from './paths.ts'
import type { Presence } from './provider.ts'
import { allProviders, presenceOf, providerOf } from './provider-of.ts'

export type Moved = {
  /** As recorded now. */
  readonly environment: IsolatedEnvironment
  readonly from: string
  /** It is outside every directory that Coppice manages, so it is the user's and never deleted. */
  readonly handedOver: boolean
}

/**
 * Records the new paths of environments moved with `git worktree move`. One that is now outside every managed root
 * becomes the user's own, as if adopted. Changes nothing on disk.
 */
export const followMoves = async (
  context: Pick<IsolationContext, 'store' | 'providers' | 'host'>,
  codebase: Codebase,
  /** Called for each environment that is where its row says, or missing. */
  onUnmoved: (environment: IsolatedEnvironment, presence: Presence) => void = () => undefined,
): Promise<Moved[]> => {
  const found: Move[] = []
  for (const environment of await context.store.environments.live(codebase.id)) {
    if (environment.host !== context.host || !isSettled(environment)) continue
    const presence = await presenceOf(context, codebase, environment)
    if (presence.state !== 'moved') {
      onUnmoved(environment, presence)
      continue
    }
    const to = presence.tree.path
    found.push({ environment, to, owned: environment.owned && (await isManaged(to, context.host)) })
  }
  const moves = await withoutContested(context, codebase, found)
  return moves.length === 0 ? [] : context.store.transaction((store) => record(store, context.host, moves))
}

/**
 * An agent can write both of git's pointers: a directory that another environment's record still names stays that
 * one's.
 */
const withoutContested = async (
  context: Pick<IsolationContext, 'store' | 'providers' | 'host'>,
  codebase: Codebase,
  moves: readonly Move[],
): Promise<Move[]> => {
  const kept: Move[] = []
  for (const move of moves) {
    const other = await context.store.environments.liveByPath(context.host, move.to)
    const isMoving = other === undefined || moves.some(({ environment }) => environment.id === other.id)
    const named = isMoving ? undefined : await (await providerOf(context, other)).recordedPath(codebase, other)
    if (named !== move.to) kept.push(move)
  }
  return kept
}

/** Follows a move, if there was one. Returns the environment as recorded now, and that move. */
export const followed = async (
  context: Pick<IsolationContext, 'store' | 'providers' | 'host'>,
  codebase: Codebase,
  environment: IsolatedEnvironment,
): Promise<{ readonly environment: IsolatedEnvironment; readonly moved: readonly Moved[] }> => {
  if (environment.host !== context.host || !isSettled(environment)) return { environment, moved: [] }
  if ((await presenceOf(context, codebase, environment)).state !== 'moved') return { environment, moved: [] }
  const moved = await followMoves(context, codebase)
  return { environment: (await context.store.environments.get(environment.id)) ?? environment, moved }
}

export const movedNotice = ({ environment: { branch, path }, handedOver }: Moved): Notice => ({
  kind: 'worktree-moved',
  branch,
  path,
  handedOver,
})

/** The live environment whose token is on the directory at `path`, whatever path its row has. */
export const environmentAt = async (
  context: IsolationContext,
  codebase: Codebase,
  path: string,
): Promise<IsolatedEnvironment | undefined> => {
  for (const provider of await allProviders(context)) {
    const environment = await provider.environmentAt(context, codebase, path)
    const isIt = environment?.codebaseId === codebase.id && environment.provider === provider.name
    if (isIt && environment.status !== 'removed' && environment.status !== 'released') return environment
  }
  return undefined
}

/** The same for a path inside it. */
export const environmentAround = async (
  context: IsolationContext,
  codebase: Codebase,
  directory: string,
): Promise<IsolatedEnvironment | undefined> => {
  for (let at = directory; ; at = dirname(at)) {
    const found = await environmentAt(context, codebase, at)
    if (found !== undefined || at === dirname(at)) return found
  }
}

const isManaged = async (path: string, host: string): Promise<boolean> =>
  !isInternal(path) && (await managedRoot(path, host)) !== undefined

type Move = { readonly environment: IsolatedEnvironment; readonly to: string; readonly owned: boolean }

const isSettled = ({ status }: IsolatedEnvironment): boolean => status === 'active' || status === 'missing'

const record = async (store: Store, host: string, moves: readonly Move[]): Promise<Moved[]> => {
  const current: Move[] = []
  for (const move of moves) {
    const now = await store.environments.get(move.environment.id)
    // Another process may have recorded it, or started to remove it.
    if (now === undefined || !isSettled(now) || now.path !== move.environment.path) continue
    current.push(move)
    // Free the old paths first: two that swapped would each find the other's row at its new path.
    await store.environments.update(now.id, { path: `moving:${now.id}` })
  }
  const done: Moved[] = []
  for (const { environment, to, owned } of current) {
    const other = await store.environments.liveByPath(host, to)
    if (other !== undefined && !isSettled(other)) {
      await store.environments.update(environment.id, { path: environment.path })
      continue
    }
    // The other's record names another place, so this is no longer its directory.
    if (other !== undefined) await store.environments.update(other.id, { path: besidePath(other) })
    await store.environments.update(environment.id, { path: to, owned })
    if (environment.status === 'missing') await store.environments.transition(environment.id, 'missing', 'active')
    const handedOver = environment.owned && !owned
    done.push({
      environment: { ...environment, path: to, owned, status: 'active' },
      from: environment.path,
      handedOver,
    })
  }
  return done
}

/** A unique path for one whose place is taken. */
export const besidePath = ({ path, id }: Pick<IsolatedEnvironment, 'path' | 'id'>): string =>
  `${path}-${id.slice(0, 8)}`

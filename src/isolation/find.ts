import { realpath } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import { toEnvironmentId } from '../domain/names.ts'
import type { RestorePoint } from '../domain/removal/restore-point.ts'
import { parseWorkRef, taskWork } from '../domain/work.ts'
import type { IsolationContext } from './context.ts'
import { providerOf } from './provider-of.ts'
import { environmentAt } from './moved.ts'
import { restorePointsOf } from './restore-points.ts'
import { workForRestore } from './work-for-restore.ts'
import { coppice, remedy } from '../domain/remedy.ts'

/** `<ref>` is an id, a branch, a path, a work like `issue-42` or an item like `item-7`. Live environments only. */
export const findEnvironment = async (
  context: IsolationContext,
  codebase: Codebase,
  ref: string,
  cwd: string,
): Promise<IsolatedEnvironment> => {
  const { environments } = context.store
  const work = parseWorkRef(ref)
  const byId = await environments.get(toEnvironmentId(ref))
  const found =
    (byId?.codebaseId === codebase.id && isLive(byId) ? byId : undefined) ??
    (await environments.liveByBranch(codebase.id, ref)) ??
    (work === undefined ? undefined : await environments.liveByWork(codebase.id, work)) ??
    (await environments.liveByPath(context.host, await real(resolve(cwd, ref)))) ??
    // Moved by the user; git's record says which one it is.
    (await environmentAt(context, codebase, await real(resolve(cwd, ref)))) ??
    (ref.trim() === '' ? undefined : await environments.liveByWork(codebase.id, taskWork(ref))) ??
    (await ofItem(context, codebase, ref)) ??
    (await onBranch(context, codebase, ref))
  if (found !== undefined && found.codebaseId === codebase.id) return found
  throw new AppError('not-found', `${codebase.name} has no worktree ${JSON.stringify(ref)}`, {
    remedy: remedy`run ${coppice('worktree list')} for a list, or ${coppice('worktree restore --list')} for removed ones`,
  })
}

/** Where an item of the fleet is worked on. Throws if it hasn't begun. */
const ofItem = async (
  { store }: Pick<IsolationContext, 'store'>,
  codebase: Codebase,
  ref: string,
): Promise<IsolatedEnvironment | undefined> => {
  const number = /^item-(\d{1,9})$/.exec(ref)?.[1]
  const itemId = Number(number)
  const item = number === undefined ? undefined : await store.items.get(itemId)
  if (item?.codebaseId !== codebase.id) return undefined
  const found = item.environmentId === undefined ? undefined : await store.environments.get(item.environmentId)
  if (found !== undefined && isLive(found)) return found
  throw new AppError('not-found', `item ${itemId} has no worktree`, {
    remedy: remedy`run ${coppice(`item show ${itemId}`)} for its state`,
  })
}

/** Its branch was renamed; not recorded yet. */
const onBranch = async (
  context: Pick<IsolationContext, 'store' | 'providers' | 'host'>,
  codebase: Codebase,
  branch: string,
): Promise<IsolatedEnvironment | undefined> => {
  for (const environment of await context.store.environments.live(codebase.id)) {
    if (environment.host !== context.host) continue
    const provider = await providerOf(context, environment)
    const presence = await provider.presence(codebase, environment)
    const head = presence.state === 'present' ? await provider.headBranch(presence.tree) : undefined
    if (head === branch) return environment
  }
  return undefined
}

const isLive = ({ status }: IsolatedEnvironment): boolean => status !== 'removed' && status !== 'released'

const real = (path: string): Promise<string> => realpath(path).catch(() => path)

/** What can be restored, newest first. Skips work and branches that have an environment again. */
export const restorablePoints = async (context: IsolationContext, codebase: Codebase): Promise<RestorePoint[]> => {
  const { environments } = context.store
  const branches = new Set((await environments.live(codebase.id)).map(({ branch }) => branch))
  const points: RestorePoint[] = []
  for (const point of await restorePointsOf(context, codebase)) {
    const { environment } = point.contents
    const isBack =
      branches.has(environment.branch) || 'live' in (await workForRestore(context.store, codebase.id, environment))
    if (!isBack) points.push(point)
  }
  return points
}

/** The newest restore point that `ref` matches; without it, the newest not yet restored. */
export const findRestorePoint = async (
  context: IsolationContext,
  codebase: Codebase,
  ref: string | undefined,
  cwd: string,
): Promise<RestorePoint> => {
  if (ref === undefined) {
    const [newest] = await restorablePoints(context, codebase)
    if (newest !== undefined) return newest
    throw nothingToRestore(context, codebase, '')
  }
  const points = await restorePointsOf(context, codebase)
  const work = parseWorkRef(ref)
  const found = points.find(({ id, contents: { environment, aliases } }) => {
    const works = [environment.work, ...aliases]
    return (
      [id, environment.id, environment.branch, environment.path].includes(ref) ||
      environment.path === resolve(cwd, ref) ||
      works.some((one) => work !== undefined && one.type === work.type && one.id === work.id) ||
      // Its branch may have been renamed before it was removed.
      works.some((one) => one.type === 'task' && one.id === ref)
    )
  })
  if (found !== undefined) return found
  // The list shows the first eight digits of an id.
  const [short, another] = /^[0-9a-f-]{8,}$/.test(ref) ? points.filter(({ id }) => id.startsWith(ref)) : []
  if (short !== undefined && another === undefined) return short
  throw nothingToRestore(context, codebase, ` for ${JSON.stringify(ref)}`)
}

const nothingToRestore = (
  { settings }: Pick<IsolationContext, 'settings'>,
  { name }: Codebase,
  what: string,
): AppError =>
  new AppError('not-found', `${name} has nothing to restore${what}`, {
    remedy: remedy`removed worktrees are kept for ${settings.restoreDays} days; run ${coppice('worktree restore --list')} for a list`,
  })

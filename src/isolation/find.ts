import { realpath } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import { toEnvironmentId } from '../domain/names.ts'
import type { RestorePoint } from '../domain/restore-point.ts'
import { parseWorkRef, taskWork } from '../domain/work.ts'
import type { IsolationContext } from './context.ts'

/** `<ref>` is an id, a branch, a path or a work like `issue-42`. Live environments only. */
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
    (ref.trim() === '' ? undefined : await environments.liveByWork(codebase.id, taskWork(ref)))
  if (found !== undefined && found.codebaseId === codebase.id) return found
  throw new AppError('not-found', `${codebase.name} has no environment ${JSON.stringify(ref)}`, {
    remedy: '`coppice worktree list` shows what is there, `coppice worktree restore` what was removed',
  })
}

const isLive = ({ status }: IsolatedEnvironment): boolean => status !== 'removed' && status !== 'released'

const real = (path: string): Promise<string> => realpath(path).catch(() => path)

/** The newest restore point that a reference means; without one, the newest of the codebase. */
export const findRestorePoint = async (
  context: IsolationContext,
  codebase: Codebase,
  ref: string | undefined,
  cwd: string,
): Promise<RestorePoint> => {
  const points = await context.store.restorePoints.list(codebase.id)
  const work = ref === undefined ? undefined : parseWorkRef(ref)
  const found = points.find(({ id, contents: { environment, aliases } }) => {
    if (ref === undefined) return true
    const works = [environment.work, ...aliases]
    return (
      [id, environment.id, environment.branch, environment.path].includes(ref) ||
      environment.path === resolve(cwd, ref) ||
      works.some((one) => work !== undefined && one.type === work.type && one.id === work.id)
    )
  })
  if (found !== undefined) return found
  const what = ref === undefined ? 'nothing to restore' : `nothing to restore for ${JSON.stringify(ref)}`
  throw new AppError('not-found', `${codebase.name} has ${what}`, {
    remedy: `removed environments are kept for ${context.settings.restoreDays} days`,
  })
}

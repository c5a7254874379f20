import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Codebase } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import { unlessMissing } from '../domain/missing.ts'
import type { RestorePoint } from '../domain/removal/restore-point.ts'
import { readUntrustedText } from '../process/files/read-untrusted.ts'
import type { IsolationContext } from './context.ts'
import { providerOf } from './provider-of.ts'

/**
 * Every restore point of the codebase, newest first. A point is also described on disk, so that it outlives the
 * database: one without a row gets its row back first. Starts git only for those.
 */
export const restorePointsOf = async (context: IsolationContext, codebase: Codebase): Promise<RestorePoint[]> => {
  const { restorePoints } = context.store
  const listed = await restorePoints.list(codebase.id)
  return (await recall(context, codebase, listed)) ? restorePoints.list(codebase.id) : listed
}

const recall = async (
  context: IsolationContext,
  codebase: Codebase,
  listed: readonly RestorePoint[],
): Promise<boolean> => {
  const onDisk = (await unlessMissing(readdir(join(context.home, 'restore')))) ?? []
  const known = new Set(listed.map(({ id }) => id))
  const unknown = onDisk.filter((id) => !known.has(id))
  if (unknown.length === 0) return false
  // A removal in progress writes its point before its row.
  const open = new Set((await context.store.journal.open(context.host)).map(({ id }) => id))
  let recalled = false
  for (const id of unknown) {
    if (open.has(id) || (await context.store.restorePoints.get(id)) !== undefined) continue
    const point = await readRestorePoint(context, id).catch(() => undefined)
    if (point?.codebaseId !== codebase.id || point.host !== context.host) continue
    if (!(await (await providerOf(context, point.contents.environment)).isRestorable(context, codebase, point)))
      continue
    await context.store.restorePoints.watch(context.host, context.clock())
    try {
      await context.store.restorePoints.insert(point)
    } catch (error) {
      // Another process has just recalled it.
      if ((await context.store.restorePoints.get(id)) === undefined) throw error
    }
    recalled = true
  }
  return recalled
}

/** The id comes from the database and becomes a path to delete, so allow only a plain name. */
export const restoreDirectory = (context: Pick<IsolationContext, 'home'>, id: string): string => {
  if (!/^[A-Za-z0-9][A-Za-z0-9-]{0,99}$/.test(id)) {
    throw new AppError('name-invalid', `${JSON.stringify(id.slice(0, 80))} isn't a valid restore point`)
  }
  return join(context.home, 'restore', id)
}

/** As written on disk. */
const readRestorePoint = async (context: Pick<IsolationContext, 'home'>, id: string): Promise<RestorePoint> =>
  JSON.parse(
    (await readUntrustedText(join(restoreDirectory(context, id), 'point.json'), { maxBytes: maxPointBytes })) ?? '',
  ) as RestorePoint

/** It lists every uncommitted file with its mode. */
const maxPointBytes = 256 * 1024 * 1024

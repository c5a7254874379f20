/*
 * Environments in the database. In: rows and patches. Out: rows; two live ones never share a work, a branch or a path.
 */
import type { Kysely } from 'kysely'
import { assertTransition, type IsolatedEnvironment } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import { aliasStore } from '../aliases.ts'
import { type Engine, inTransaction } from '../engine.ts'
import { insertEnvironment } from './insert.ts'
import { fromRow, isLive, isLiveStatus, patchColumns } from './rows.ts'
import { patchedColumns } from '../rows.ts'
import type { EnvironmentPatch, EnvironmentStore } from './store.ts'
import type { EnvironmentRow, Tables } from '../tables.ts'

export const environmentStore = (db: Kysely<Tables>, engine: Engine): EnvironmentStore => {
  const all = () => db.selectFrom('environments').selectAll()
  return {
    ...aliasStore(db, engine),
    insert: (environment, limit) =>
      inTransaction(db, (transaction) => insertEnvironment(transaction, engine, environment, limit)),
    get: async (id) => found(await all().where('id', '=', id).executeTakeFirst()),
    some: async (ids) =>
      ids.length === 0 ? [] : (await all().where('id', 'in', ids).orderBy('id').execute()).map(fromRow),
    liveByWork: async (codebaseId, work) => found(await byWork(db, codebaseId, work.type, work.id)),
    liveByBranch: async (codebaseId, branch) =>
      found(
        await all()
          .where('codebase_id', '=', codebaseId)
          .where('branch', '=', branch)
          .where(isLive())
          .executeTakeFirst(),
      ),
    liveByPath: async (host, path) =>
      found(await all().where('host', '=', host).where('path', '=', path).where(isLive()).executeTakeFirst()),
    live: async (codebaseId) => {
      const rows = await all().where('codebase_id', '=', codebaseId).where(isLive()).execute()
      return rows.map(fromRow).toSorted((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
    },
    notOwn: async (codebaseId) => {
      const rows = await all().where('codebase_id', '=', codebaseId).where('trust', '<>', 'own').execute()
      return rows.map(fromRow)
    },
    lastRemoved: async (codebaseId, branch) =>
      found(
        await all()
          .where('codebase_id', '=', codebaseId)
          .where('branch', '=', branch)
          .where('status', '=', 'removed')
          .orderBy('created_at', 'desc')
          .limit(1)
          .executeTakeFirst(),
      ),
    update: async (id, patch) => {
      const set = columnsOf(patch)
      if (Object.keys(set).length === 0) return
      await rejectConflict(engine, () => db.updateTable('environments').set(set).where('id', '=', id).execute())
    },
    transition: async (id, from, to, patch = {}) => {
      assertTransition(from, to)
      const change = { ...columnsOf(patch), status: to }
      const update = async (inside: Kysely<Tables>): Promise<boolean> => {
        const result = await rejectConflict(engine, () =>
          inside
            .updateTable('environments')
            .set(change)
            .where('id', '=', id)
            .where('status', '=', from)
            .executeTakeFirst(),
        )
        return result.numUpdatedRows === 1n
      }
      if (isLiveStatus(to)) return update(db)
      return inTransaction(db, async (inside) => {
        const changed = await update(inside)
        if (changed) await inside.deleteFrom('git_looks').where('environment_id', '=', id).execute()
        return changed
      })
    },
    deleteCreating: async (id) => {
      await db.deleteFrom('environments').where('id', '=', id).where('status', '=', 'creating').execute()
    },
  }
}

/** A union, not an `or`, so each half uses its index. The environment's own work comes before an alias. */
const byWork = (db: Kysely<Tables>, codebaseId: string, type: string, id: string) =>
  db
    .selectFrom('environments')
    .selectAll('environments')
    .where('codebase_id', '=', codebaseId)
    .where('work_type', '=', type)
    .where('work_id', '=', id)
    .where(isLive())
    .unionAll(
      db
        .selectFrom('environment_aliases as alias')
        .innerJoin('environments', 'environments.id', 'alias.environment_id')
        .selectAll('environments')
        .where('alias.codebase_id', '=', codebaseId)
        .where('alias.work_type', '=', type)
        .where('alias.work_id', '=', id)
        .where(isLive('environments.status')),
    )
    .limit(1)
    .executeTakeFirst()

const columnsOf = (patch: EnvironmentPatch): Partial<EnvironmentRow> =>
  patchedColumns<EnvironmentPatch, EnvironmentRow>(patch, patchColumns)

/** Inserts return a conflict; an update that conflicts with a live environment is the caller's bug. */
const rejectConflict = async <T>(engine: Engine, change: () => Promise<T>): Promise<T> => {
  try {
    return await change()
  } catch (error) {
    if (!engine.isUniqueViolation(error)) throw error
    throw new AppError('store-failed', 'another live environment already has this branch or path', { cause: error })
  }
}

const found = (row: EnvironmentRow | undefined): IsolatedEnvironment | undefined =>
  row === undefined ? undefined : fromRow(row)

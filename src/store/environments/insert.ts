import type { Kysely } from 'kysely'
import type { IsolatedEnvironment } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import { lockCodebase } from '../codebases.ts'
import type { Engine } from '../engine.ts'
import { isLive, isLiveStatus, toRow } from './rows.ts'
import type { InsertOutcome } from './store.ts'
import type { Tables } from '../tables.ts'

/** Inside a transaction. Locks what it decides on, so the result still holds when it is written. */
export const insertEnvironment = async (
  db: Kysely<Tables>,
  engine: Engine,
  environment: IsolatedEnvironment,
  limit: number | undefined,
): Promise<InsertOutcome> => {
  if (!(await lockCodebase(db, engine, environment.codebaseId))) {
    throw new AppError('not-found', `unknown codebase ${environment.codebaseId}`)
  }
  const live = isLiveStatus(environment.status)
  const on = live ? await conflict(db, environment) : undefined
  if (on !== undefined) return { outcome: 'conflict', on }
  const active = live && limit !== undefined ? await countActive(db, environment.codebaseId) : 0
  if (limit !== undefined && live && active >= limit) return { outcome: 'limit', active }
  return insertOrConflict(db, environment)
}

/**
 * The lock covers the codebase, but a path belongs to the host: another codebase may take it between our check and our
 * insert. The index decides, without an error that would end the transaction, and a second check finds why.
 */
const insertOrConflict = async (db: Kysely<Tables>, environment: IsolatedEnvironment): Promise<InsertOutcome> => {
  const result = await db
    .insertInto('environments')
    .values(toRow(environment))
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst()
  if (result.numInsertedOrUpdatedRows === 1n) return { outcome: 'inserted' }
  const on = await conflict(db, environment)
  if (on === undefined) throw new AppError('store-failed', `environment ${environment.id} already exists`)
  return { outcome: 'conflict', on }
}

const conflict = async (
  db: Kysely<Tables>,
  { host, codebaseId, work, branch, path }: IsolatedEnvironment,
): Promise<'work' | 'branch' | 'path' | undefined> => {
  const live = () => db.selectFrom('environments').select('environments.id').where(isLive('environments.status'))
  const ofCodebase = () => live().where('environments.codebase_id', '=', codebaseId)
  const byWork = await ofCodebase().where('work_type', '=', work.type).where('work_id', '=', work.id).executeTakeFirst()
  if (byWork !== undefined) return 'work'
  const byAlias = await live()
    .innerJoin('environment_aliases as alias', 'alias.environment_id', 'environments.id')
    .where('alias.codebase_id', '=', codebaseId)
    .where('alias.work_type', '=', work.type)
    .where('alias.work_id', '=', work.id)
    .executeTakeFirst()
  if (byAlias !== undefined) return 'work'
  if ((await ofCodebase().where('branch', '=', branch).executeTakeFirst()) !== undefined) return 'branch'
  const byPath = await live().where('host', '=', host).where('path', '=', path).executeTakeFirst()
  return byPath === undefined ? undefined : 'path'
}

/** Missing ones don't count: they have nothing on disk. */
const countActive = async (db: Kysely<Tables>, codebaseId: string): Promise<number> => {
  const { active } = await db
    .selectFrom('environments')
    .select((eb) => eb.fn.countAll<number>().as('active'))
    .where('codebase_id', '=', codebaseId)
    .where(isLive())
    .where('status', '<>', 'missing')
    .executeTakeFirstOrThrow()
  return active
}

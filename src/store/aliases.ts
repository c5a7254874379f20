import type { Kysely } from 'kysely'
import type { IsolatedEnvironment } from '../domain/environment.ts'
import { type EnvironmentId, toEnvironmentId } from '../domain/names.ts'
import { sameWork, tasksOfBranch, type Work } from '../domain/work.ts'
import { lockCodebase } from './codebases.ts'
import { type Engine, inTransaction } from './engine.ts'
import { fromRow, isLive, workOf } from './environments/rows.ts'
import type { EnvironmentStore } from './environments/store.ts'
import type { Tables } from './tables.ts'

type AliasStore = Pick<EnvironmentStore, 'addAlias' | 'moveWork' | 'aliases' | 'aliasesOf' | 'dropAliases'>

/** Other works under which an environment is found. */
export const aliasStore = (db: Kysely<Tables>, engine: Engine): AliasStore => {
  const aliasesOf = async (ids: readonly EnvironmentId[]): Promise<Map<EnvironmentId, Work[]>> => {
    const found = new Map<EnvironmentId, Work[]>()
    if (ids.length === 0) return found
    const rows = await db
      .selectFrom('environment_aliases')
      .selectAll()
      .where('environment_id', 'in', ids)
      .orderBy('created_at')
      .orderBy('work_type')
      .orderBy('work_id')
      .execute()
    for (const row of rows) {
      const id = toEnvironmentId(row.environment_id)
      found.set(id, [...(found.get(id) ?? []), workOf(row)])
    }
    return found
  }
  return {
    addAlias: (id, codebaseId, work, at) =>
      inTransaction(db, async (transaction) => {
        await lockCodebase(transaction, engine, codebaseId)
        const holder = await liveHolder(transaction, codebaseId, work)
        if (holder !== undefined) return holder === id
        if (!(await isLiveEnvironment(transaction, id, codebaseId))) return false
        await replaceAlias(transaction, id, codebaseId, work, at)
        return true
      }),
    moveWork: (id, codebaseId, work, at) =>
      inTransaction(db, async (transaction) => {
        await lockCodebase(transaction, engine, codebaseId)
        if (!(await isLiveEnvironment(transaction, id, codebaseId))) return { outcome: 'gone' }
        const holder = await liveHolder(transaction, codebaseId, work)
        if (holder === id) return { outcome: 'already-there' }
        const from = holder === undefined ? undefined : await giveUp(transaction, holder, codebaseId, work)
        await replaceAlias(transaction, id, codebaseId, work, at)
        return { outcome: 'moved', from }
      }),
    aliases: async (id) => (await aliasesOf([id])).get(id) ?? [],
    aliasesOf,
    dropAliases: async (id) => {
      await db.deleteFrom('environment_aliases').where('environment_id', '=', id).execute()
    },
  }
}

/** The live environment for this work, directly or by an alias. */
const liveHolder = async (db: Kysely<Tables>, codebaseId: string, work: Work): Promise<string | undefined> => {
  const live = () => db.selectFrom('environments').select('environments.id').where(isLive('environments.status'))
  const own = await live()
    .where('codebase_id', '=', codebaseId)
    .where('work_type', '=', work.type)
    .where('work_id', '=', work.id)
    .executeTakeFirst()
  if (own !== undefined) return own.id
  const other = await live()
    .innerJoin('environment_aliases as alias', 'alias.environment_id', 'environments.id')
    .where('alias.codebase_id', '=', codebaseId)
    .where('alias.work_type', '=', work.type)
    .where('alias.work_id', '=', work.id)
    .executeTakeFirst()
  return other?.id
}

/** An alias is replaced by the new one; a work of its own becomes a task. Returns the environment as it is then. */
const giveUp = async (db: Kysely<Tables>, id: string, codebaseId: string, work: Work): Promise<IsolatedEnvironment> => {
  const row = await db.selectFrom('environments').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
  const environment = fromRow(row)
  if (!sameWork(environment.work, work)) return environment
  const [task, another] = tasksOfBranch(environment.branch, id)
  const own = (await liveHolder(db, codebaseId, task)) === undefined ? task : another
  const set = { work_type: own.type, work_id: own.id }
  await db.updateTable('environments').set(set).where('id', '=', id).execute()
  return { ...environment, work: own }
}

const isLiveEnvironment = async (db: Kysely<Tables>, id: string, codebaseId: string): Promise<boolean> => {
  const row = await db
    .selectFrom('environments')
    .select('id')
    .where('id', '=', id)
    .where('codebase_id', '=', codebaseId)
    .where(isLive())
    .executeTakeFirst()
  return row !== undefined
}

/** An existing row is one that is being moved, or a dead environment's, left by a crash: overwrite it. */
const replaceAlias = async (
  db: Kysely<Tables>,
  id: string,
  codebaseId: string,
  work: Work,
  at: number,
): Promise<void> => {
  const claim = { environment_id: id, created_at: at }
  await db
    .insertInto('environment_aliases')
    .values({ ...claim, codebase_id: codebaseId, work_type: work.type, work_id: work.id })
    .onConflict((conflict) => conflict.columns(['codebase_id', 'work_type', 'work_id']).doUpdateSet(claim))
    .execute()
}

import type { Kysely } from 'kysely'
import type { FormulaRun, FormulaRunState, StepRecord } from '../../domain/fleet/formula.ts'
import type { Sha } from '../../domain/names.ts'
import { fromFlag, fromJson, orNull, orUndefined, toFlag, toJson } from '../rows.ts'
import type { Tables } from '../tables.ts'
import { holderColumns, holderOf, isHeldBy } from './holder.ts'
import type { FormulaRunRow } from './tables.ts'
import type { FormulaRunPatch, FormulaRunStore } from './store.ts'

export const formulaRunStore = (db: Kysely<Tables>): FormulaRunStore => {
  const all = () => db.selectFrom('formula_runs').selectAll()
  const found = (row: FormulaRunRow | undefined): FormulaRun | undefined =>
    row === undefined ? undefined : fromRow(row)
  return {
    insert: async (run) => {
      const result = await db
        .insertInto('formula_runs')
        .values(toRow(run))
        .onConflict((conflict) => conflict.doNothing())
        .executeTakeFirst()
      return result.numInsertedOrUpdatedRows === 1n
    },
    get: async (id) => found(await all().where('id', '=', id).executeTakeFirst()),
    running: async () => (await all().where('state', '=', 'running').orderBy('created_at').execute()).map(fromRow),
    runningOf: async (agentId) =>
      found(await all().where('agent_id', '=', agentId).where('state', '=', 'running').executeTakeFirst()),
    latestOfItem: async (itemId) =>
      found(await all().where('item_id', '=', itemId).orderBy('created_at', 'desc').limit(1).executeTakeFirst()),
    claim: async (id, expected, holder) => {
      const update = db.updateTable('formula_runs').set(holderColumns(holder)).where('id', '=', id)
      const running = update.where('state', '=', 'running')
      return (await running.where(isHeldBy(expected)).executeTakeFirst()).numUpdatedRows === 1n
    },
    update: async (id, patch, at) => {
      await db
        .updateTable('formula_runs')
        .set({ ...columnsOf(patch), updated_at: at })
        .where('id', '=', id)
        .execute()
    },
  }
}

const waiterColumns = (waiter: FormulaRun['waiter']): Pick<FormulaRunRow, 'waiter_pid' | 'waiter_start_time'> => ({
  waiter_pid: waiter?.pid ?? null,
  waiter_start_time: waiter?.startTime ?? null,
})

const columnsOf = (patch: FormulaRunPatch): Partial<FormulaRunRow> => ({
  ...(patch.steps !== undefined && { steps: toJson(patch.steps) }),
  ...(patch.state !== undefined && { state: patch.state }),
  ...(patch.branch !== undefined && { branch: patch.branch }),
  ...(patch.sha !== undefined && { sha: patch.sha }),
  ...(patch.pullRequest !== undefined && { pull_request: patch.pullRequest }),
  ...('holder' in patch && holderColumns(patch.holder)),
  ...('waiter' in patch && waiterColumns(patch.waiter)),
})

const toRow = (run: FormulaRun): FormulaRunRow => ({
  id: run.id,
  agent_id: run.agentId,
  item_id: orNull(run.itemId),
  formula: run.formula,
  steps: toJson(run.steps),
  state: run.state,
  branch: run.branch,
  sha: orNull(run.sha),
  pull_request: orNull(run.pullRequest),
  close: toFlag(run.close),
  ...holderColumns(run.holder),
  ...waiterColumns(run.waiter),
  created_at: run.createdAt,
  updated_at: run.updatedAt,
})

const fromRow = (row: FormulaRunRow): FormulaRun => ({
  id: row.id,
  agentId: row.agent_id,
  itemId: orUndefined(row.item_id),
  formula: row.formula,
  steps: fromJson(row.steps) as StepRecord[],
  state: row.state as FormulaRunState,
  branch: row.branch,
  sha: orUndefined(row.sha) as Sha | undefined,
  pullRequest: orUndefined(row.pull_request),
  close: fromFlag(row.close),
  holder: holderOf(row),
  waiter:
    row.waiter_pid === null || row.waiter_start_time === null
      ? undefined
      : { pid: row.waiter_pid, startTime: row.waiter_start_time },
  createdAt: row.created_at,
  updatedAt: row.updated_at,
})

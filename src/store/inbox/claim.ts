import { type Kysely, sql } from 'kysely'
import type { Engine } from '../engine.ts'
import { childColumns, fromRow, holderColumns } from './rows.ts'
import type { ClaimRequest, InboxMessage } from '../store.ts'
import type { Tables } from '../tables.ts'

/**
 * The hot statement: updates one row, found by the index `inbox_claim`.
 *
 * Why only one caller gets it: on SQLite the statement is its own write transaction, and there is one writer. On
 * PostgreSQL the inner select locks its row and skips rows locked by other claims, without waiting; a row that changed
 * since our snapshot is checked again after locking, and skipped if taken.
 *
 * Why one at a time per conversation, in order: only the first open message of a queue is `ready`, and it stays so
 * while it runs. A claim doesn't change which is first, so it needs no lock on the queue.
 */
export const claimMessage = async (
  db: Kysely<Tables>,
  engine: Engine,
  { holder, lane, conversation, platforms }: ClaimRequest,
): Promise<InboxMessage | undefined> => {
  if (platforms?.length === 0) return undefined
  let next = db
    .selectFrom('inbox')
    .select('seq')
    // Literals: SQLite uses a partial index only if the statement's text implies its condition.
    .where(sql<boolean>`state = 'waiting' and ready = 1`)
    .where('lane', '=', sql.lit(lane))
    .orderBy('seq')
    .limit(1)
  if (platforms !== undefined) next = next.where('platform', 'in', platforms)
  if (conversation !== undefined) {
    next = next.where('platform', '=', conversation.platform).where('conversation_id', '=', conversation.conversationId)
  }
  if (engine.rowLocks) next = next.forUpdate().skipLocked()
  const row = await db
    .updateTable('inbox')
    .set((eb) => ({
      state: 'running',
      attempts: eb('attempts', '+', 1),
      ...holderColumns(holder),
      ...childColumns(undefined),
    }))
    .where('seq', '=', next)
    .returningAll()
    .executeTakeFirst()
  return row === undefined ? undefined : fromRow(row)
}

/*
 * The inbox in the database. In: messages, once each by delivery id. Out: the next message of each conversation,
 * claimed by one process.
 */
import { type Kysely, sql } from 'kysely'
import { AppError } from '../../domain/errors.ts'
import { assertMessageTransition, type MessageDetails, type MessageState } from '../../domain/message.ts'
import { type Engine, inTransaction } from '../engine.ts'
import { claimMessage } from './claim.ts'
import { distinctKeys, keyList, queuesPerStatement, lockQueues, markFirstReady } from './conversation-queue.ts'
import { type AcceptedMessage, childColumns, fromRow, holderColumns, toRow } from './rows.ts'
import { fromJson } from '../rows.ts'
import type { ConversationKey, InboxStore, MessageHolder, Opening } from '../store.ts'
import type { InboxRow, Tables } from '../tables.ts'

export const inboxStore = (db: Kysely<Tables>, engine: Engine): InboxStore => {
  const all = () => db.selectFrom('inbox').selectAll()
  return {
    accept: (messages) => accept(db, engine, messages),
    claim: (request) => claimMessage(db, engine, request),
    get: async (id) => {
      const row = await all().where('id', '=', id).executeTakeFirst()
      return row === undefined ? undefined : fromRow(row)
    },
    byDelivery: async (platform, deliveryId) => {
      const row = await all().where('platform', '=', platform).where('delivery_id', '=', deliveryId).executeTakeFirst()
      return row === undefined ? undefined : fromRow(row)
    },
    setChild: async (id, child) => {
      const result = await db
        .updateTable('inbox')
        .set(childColumns(child))
        .where('id', '=', id)
        .where('state', '=', 'running')
        .executeTakeFirst()
      // A process that nobody could stop before the message is rerun must not continue.
      if (child !== undefined && result.numUpdatedRows === 0n) {
        throw new AppError('store-failed', `message ${id} is no longer running`)
      }
    },
    transition: (id, from, to, holder) => transition(db, engine, id, from, to, holder),
    putBack: async (id, holder) => {
      const set = { state: 'waiting', countPutBack: true } as const
      return (await updateState(db, id, 'running', set, holder)) !== undefined
    },
    running: async () =>
      (
        await all()
          .where(sql<boolean>`state = 'running'`)
          .orderBy('seq')
          .execute()
      ).map(fromRow),
    waiting: async (before, limit) => {
      const rows = await all()
        .where(sql<boolean>`state = 'waiting'`)
        .where('accepted_at', '<', before)
        .orderBy('accepted_at')
        .orderBy('seq')
        .limit(limit)
        .execute()
      return rows.map(fromRow)
    },
    counts: async () => {
      const { rows } = await sql<{ waiting: number; running: number }>`
        select (select count(*) from inbox where state = 'waiting') as waiting,
          (select count(*) from inbox where state = 'running') as running`.execute(db)
      return { waiting: rows[0]?.waiting ?? 0, running: rows[0]?.running ?? 0 }
    },
    pending: (conversations) => pending(db, distinctKeys(conversations)),
    firstTexts: (conversations) => firstTexts(db, distinctKeys(conversations)),
    ofConversation: async ({ platform, conversationId }, limit) => {
      const rows = await all()
        .where('platform', '=', platform)
        .where('conversation_id', '=', conversationId)
        .orderBy('seq', 'desc')
        .limit(limit)
        .execute()
      return rows.toReversed().map(fromRow)
    },
    deleteDone: async (before) => {
      const result = await db
        .deleteFrom('inbox')
        .where(sql<boolean>`state = 'done'`)
        .where('accepted_at', '<', before)
        .executeTakeFirst()
      return Number(result.numDeletedRows)
    },
  }
}

/** Twelve parameters per row; SQLite allows 32,766 per statement. */
const rowsPerStatement = 500

const accept = async (
  db: Kysely<Tables>,
  engine: Engine,
  messages: readonly AcceptedMessage[],
): Promise<Set<string>> => {
  if (messages.length === 0) return new Set()
  const queues = distinctKeys(messages.filter(({ lane }) => lane === 'turn'))
  return inTransaction(db, async (transaction) => {
    await lockQueues(transaction, engine, queues)
    const fresh = new Set<string>()
    for (let first = 0; first < messages.length; first += rowsPerStatement) {
      const inserted = await transaction
        .insertInto('inbox')
        .values(messages.slice(first, first + rowsPerStatement).map(toRow))
        // Only this conflict means "duplicate"; a duplicate id is a bug and must not pass for one.
        .onConflict((conflict) => conflict.columns(['platform', 'delivery_id']).doNothing())
        .returning('id')
        .execute()
      for (const { id } of inserted) fresh.add(id)
    }
    if (fresh.size > 0) await markFirstReady(transaction, queues)
    return fresh
  })
}

const transition = async (
  db: Kysely<Tables>,
  engine: Engine,
  id: string,
  from: MessageState,
  to: MessageState,
  holder: MessageHolder | undefined,
): Promise<boolean> => {
  assertMessageTransition(from, to)
  if (to === 'running') throw new AppError('illegal-transition', 'a message can only be started by claiming it')
  if (to === 'waiting') return (await updateState(db, id, from, { state: to }, holder)) !== undefined
  return inTransaction(db, async (transaction) => {
    const left = await updateState(transaction, id, from, { state: to, ready: 0 }, holder)
    if (left === undefined) return false
    if (left.lane !== 'turn') return true
    const queue = [{ platform: left.platform, conversationId: left.conversation_id }]
    await lockQueues(transaction, engine, queue)
    await markFirstReady(transaction, queue)
    return true
  })
}

const updateState = async (
  db: Kysely<Tables>,
  id: string,
  from: MessageState,
  {
    countPutBack = false,
    ...set
  }: { readonly state: MessageState; readonly ready?: 0; readonly countPutBack?: boolean },
  holder: MessageHolder | undefined,
): Promise<Pick<InboxRow, 'platform' | 'conversation_id' | 'lane'> | undefined> => {
  const row = db
    .updateTable('inbox')
    .set((eb) => ({
      ...set,
      ...(countPutBack && { put_backs: eb('put_backs', '+', 1) }),
      ...holderColumns(undefined),
      ...childColumns(undefined),
    }))
    .where('id', '=', id)
    .where('state', '=', from)
  const ours =
    from === 'running' && holder !== undefined
      ? row
          .where('holder_host', '=', holder.host)
          .where('holder_pid', '=', holder.process.pid)
          .where('holder_start_time', '=', holder.process.startTime)
      : row
  return ours.returning(['platform', 'conversation_id', 'lane']).executeTakeFirst()
}

/** Naming both lanes makes SQLite use the index of open messages, not the one of all messages. */
const pending = async (db: Kysely<Tables>, keys: readonly ConversationKey[]): Promise<ConversationKey[]> => {
  const found: ConversationKey[] = []
  for (let first = 0; first < keys.length; first += queuesPerStatement) {
    const { rows } = await sql<{ column1: string; column2: string }>`
      select column1, column2 from (values ${keyList(keys.slice(first, first + queuesPerStatement))}) as asked
      where exists (
        select 1 from inbox
        where platform = asked.column1 and conversation_id = asked.column2 and state <> 'done'
          and lane in ('turn', 'at-once')
      )`.execute(db)
    for (const { column1, column2 } of rows) found.push({ platform: column1, conversationId: column2 })
  }
  return found
}

const firstTexts = async (db: Kysely<Tables>, keys: readonly ConversationKey[]): Promise<Opening[]> => {
  const found: Opening[] = []
  for (let first = 0; first < keys.length; first += queuesPerStatement) {
    const { rows } = await sql<{ column1: string; column2: string; text: string; details: string }>`
      select column1, column2, inbox.text, inbox.details from (values ${keyList(keys.slice(first, first + queuesPerStatement))}) as asked
      join inbox on inbox.seq = (
        select min(seq) from inbox as earliest
        where earliest.platform = asked.column1 and earliest.conversation_id = asked.column2
          and earliest.kind = 'message' and earliest.text not like '/%'
      )`.execute(db)
    for (const { column1, column2, text, details } of rows) {
      const { title } = fromJson(details) as MessageDetails
      found.push({ platform: column1, conversationId: column2, text, title: title?.text })
    }
  }
  return found
}

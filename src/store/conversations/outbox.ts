import { type Insertable, type Kysely, type Selectable, sql } from 'kysely'
import type { ReplyAction, ReplyState, Role } from '../../domain/message.ts'
import { inTransaction } from '../engine.ts'
import { orNull, orUndefined, patchedColumns } from '../rows.ts'
import type { OutboxStore, Reply } from '../store.ts'
import type { OutboxRow, Tables } from '../tables.ts'

export const outboxStore = (db: Kysely<Tables>): OutboxStore => {
  const all = () => db.selectFrom('outbox').selectAll()
  return {
    append: (replies) => append(db, replies),
    due: async (platforms, now, limit, longestWaitMs) => {
      if (platforms.length === 0) return []
      const rows = await firstWaiting(db, platforms)
        .selectAll()
        .where((eb) => eb.or([eb('next_attempt_at', '<=', now), eb('next_attempt_at', '>', now + longestWaitMs)]))
        .orderBy('seq')
        .limit(limit)
        .execute()
      return rows.map(fromRow)
    },
    nextDueAt: async (platforms) => {
      if (platforms.length === 0) return undefined
      const row = await firstWaiting(db, platforms)
        .select((eb) => eb.fn.min<number | null>('next_attempt_at').as('at'))
        .executeTakeFirstOrThrow()
      return orUndefined(row.at)
    },
    get: async (id) => {
      const row = await all().where('id', '=', id).executeTakeFirst()
      return row === undefined ? undefined : fromRow(row)
    },
    update: async (id, patch) => {
      const set = patchedColumns<Parameters<OutboxStore['update']>[1], Omit<OutboxRow, 'seq'>>(patch, patchColumns)
      if (Object.keys(set).length > 0) await db.updateTable('outbox').set(set).where('id', '=', id).execute()
    },
    ofConversation: async ({ platform, conversationId }, limit) => {
      const rows = await all()
        .where('platform', '=', platform)
        .where('conversation_id', '=', conversationId)
        .orderBy('seq', 'desc')
        .limit(limit)
        .execute()
      return rows.toReversed().map(fromRow)
    },
    counts: async () => {
      const { rows } = await sql<{ waiting: number; failed: number }>`
        select (select count(*) from outbox where state = 'waiting') as waiting,
          (select count(*) from outbox where state = 'failed') as failed`.execute(db)
      return { waiting: rows[0]?.waiting ?? 0, failed: rows[0]?.failed ?? 0 }
    },
    deleteSent: async (before) => {
      const result = await db
        .deleteFrom('outbox')
        .where(sql<boolean>`state = 'sent'`)
        .where('sent_at', '<', before)
        .executeTakeFirst()
      return Number(result.numDeletedRows)
    },
  }
}

/**
 * The first waiting reply of each conversation. `seq` is assigned before the commit, so on PostgreSQL two transactions
 * may append to one conversation and become visible in reverse. Only for concurrent replies (a command's during a run):
 * messages that take turns append one after the other.
 */
const firstWaiting = (db: Kysely<Tables>, platforms: readonly string[]) =>
  db
    .selectFrom('outbox')
    .where(sql<boolean>`outbox.state = 'waiting'`)
    // Hidden from the planner, which would use the index of all replies instead of scanning the waiting ones.
    .where(sql<string>`coalesce(outbox.platform, '')`, 'in', platforms)
    .where(
      sql<boolean>`not exists (
        select 1 from outbox as earlier
        where earlier.platform = outbox.platform and earlier.conversation_id = outbox.conversation_id
          and earlier.state = 'waiting' and earlier.seq < outbox.seq)`,
    )

type NewReply = Parameters<OutboxStore['append']>[0][number]

/** Fourteen parameters per row; SQLite allows 32,766 per statement. */
const rowsPerStatement = 500

const append = async (db: Kysely<Tables>, replies: readonly NewReply[]): Promise<Set<string>> => {
  const fresh = new Set<string>()
  if (replies.length === 0) return fresh
  await inTransaction(db, async (transaction) => {
    for (let first = 0; first < replies.length; first += rowsPerStatement) {
      const inserted = await transaction
        .insertInto('outbox')
        .values(replies.slice(first, first + rowsPerStatement).map(toRow))
        // Without a message there are no reruns: nulls are distinct, so the reply is always new.
        .onConflict((conflict) => conflict.columns(['inbox_id', 'key']).doNothing())
        .returning('id')
        .execute()
      for (const { id } of inserted) fresh.add(id)
    }
  })
  return fresh
}

const patchColumns = {
  state: 'state',
  attempts: 'attempts',
  sentParts: 'sent_parts',
  nextAttemptAt: 'next_attempt_at',
  sentAt: 'sent_at',
  error: 'error',
} as const

const toRow = (reply: NewReply): Insertable<OutboxRow> => ({
  id: reply.id,
  platform: reply.platform,
  conversation_id: reply.conversationId,
  inbox_id: orNull(reply.inboxId),
  key: reply.key,
  role: reply.role,
  text: reply.text,
  state: 'waiting',
  attempts: 0,
  sent_parts: 0,
  next_attempt_at: reply.nextAttemptAt,
  created_at: reply.createdAt,
  actions: reply.actions === undefined ? null : JSON.stringify(reply.actions),
})

const fromRow = (row: Selectable<OutboxRow>): Reply => ({
  id: row.id,
  platform: row.platform,
  conversationId: row.conversation_id,
  inboxId: orUndefined(row.inbox_id),
  key: row.key,
  role: row.role as Role,
  text: row.text,
  ...(row.actions !== null && { actions: JSON.parse(row.actions) as ReplyAction[] }),
  state: row.state as ReplyState,
  attempts: row.attempts,
  sentParts: row.sent_parts,
  nextAttemptAt: row.next_attempt_at,
  createdAt: row.created_at,
  sentAt: orUndefined(row.sent_at),
  error: orUndefined(row.error),
})

import type { Kysely } from 'kysely'
import { type Engine, inTransaction } from '../engine.ts'
import { orNull, orUndefined, patchedColumns } from '../rows.ts'
import type { Session, SessionStore } from '../store.ts'
import type { SessionRow, Tables } from '../tables.ts'

export const sessionStore = (db: Kysely<Tables>, engine: Engine): SessionStore => ({
  start: (session) =>
    inTransaction(db, async (transaction) => {
      await lockConversation(transaction, engine, session.conversation)
      await endLive(transaction, session.conversation, 'replaced', session.startedAt)
      await transaction.insertInto('sessions').values(toRow(session)).execute()
    }),
  live: async (conversation) => {
    const row = await db
      .selectFrom('sessions')
      .selectAll()
      .where('conversation', '=', conversation)
      .where('ended_at', 'is', null)
      .executeTakeFirst()
    return row === undefined ? undefined : fromRow(row)
  },
  update: async (id, patch) => {
    const set = patchedColumns<Parameters<SessionStore['update']>[1], SessionRow>(patch, patchColumns)
    if (Object.keys(set).length > 0) await db.updateTable('sessions').set(set).where('id', '=', id).execute()
  },
  end: (conversation, reason, at) => endLive(db, conversation, reason, at),
})

/** Serializes concurrent starts: the later one ends the earlier. */
const lockConversation = async (db: Kysely<Tables>, engine: Engine, id: string): Promise<void> => {
  if (!engine.rowLocks) return
  await db.selectFrom('conversations').select('id').where('id', '=', id).forNoKeyUpdate().execute()
}

const endLive = async (db: Kysely<Tables>, conversation: string, reason: string, at: number): Promise<boolean> => {
  const result = await db
    .updateTable('sessions')
    .set({ ended_at: at, end_reason: reason })
    .where('conversation', '=', conversation)
    .where('ended_at', 'is', null)
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}

const patchColumns = { agentSessionId: 'agent_session_id', lastUsedAt: 'last_used_at' } as const

const toRow = (session: Session): SessionRow => ({
  id: session.id,
  conversation: session.conversation,
  agent: session.agent,
  agent_session_id: orNull(session.agentSessionId),
  directory: session.directory,
  started_at: session.startedAt,
  last_used_at: session.lastUsedAt,
  ended_at: orNull(session.endedAt),
  end_reason: orNull(session.endReason),
})

const fromRow = (row: SessionRow): Session => ({
  id: row.id,
  conversation: row.conversation,
  agent: row.agent,
  agentSessionId: orUndefined(row.agent_session_id),
  directory: row.directory,
  startedAt: row.started_at,
  lastUsedAt: row.last_used_at,
  endedAt: orUndefined(row.ended_at),
  endReason: orUndefined(row.end_reason),
})

import type { Kysely } from 'kysely'
import { toCodebaseId, toEnvironmentId } from '../domain/names.ts'
import { fromFlag, orNull, orUndefined, patchedColumns, toFlag } from './rows.ts'
import type { Conversation, ConversationStore } from './store.ts'
import type { ConversationRow, Tables } from './tables.ts'

export const conversationStore = (db: Kysely<Tables>): ConversationStore => {
  const find: ConversationStore['find'] = async (platform, conversationId) => {
    const row = await db
      .selectFrom('conversations')
      .selectAll()
      .where('platform', '=', platform)
      .where('conversation_id', '=', conversationId)
      .executeTakeFirst()
    return row === undefined ? undefined : fromRow(row)
  }
  return {
    find,
    ensure: async (conversation) => {
      const known = await find(conversation.platform, conversation.conversationId)
      if (known !== undefined) return known
      await db
        .insertInto('conversations')
        .values(toRow(conversation))
        .onConflict((conflict) => conflict.columns(['platform', 'conversation_id']).doNothing())
        .execute()
      return (await find(conversation.platform, conversation.conversationId)) ?? conversation
    },
    update: async (id, patch) => {
      const set = {
        ...patchedColumns<Parameters<ConversationStore['update']>[1], ConversationRow>(patch, patchColumns),
        ...(patch.codebaseId !== undefined && { former_codebase_id: null, former_codebase_name: null }),
      }
      if (Object.keys(set).length > 0) await db.updateTable('conversations').set(set).where('id', '=', id).execute()
    },
    get: async (id) => {
      const row = await db.selectFrom('conversations').selectAll().where('id', '=', id).executeTakeFirst()
      return row === undefined ? undefined : fromRow(row)
    },
    recent: async ({ platform, codebaseId, limit }) => {
      const all = db.selectFrom('conversations').selectAll()
      const ofPlatform = platform === undefined ? all : all.where('platform', '=', platform)
      const filtered = codebaseId === undefined ? ofPlatform : ofPlatform.where('codebase_id', '=', codebaseId)
      return (await filtered.orderBy('last_activity_at', 'desc').orderBy('id').limit(limit).execute()).map(fromRow)
    },
    ofEnvironments: async (ids) => {
      if (ids.length === 0) return []
      const rows = await db.selectFrom('conversations').selectAll().where('environment_id', 'in', ids).execute()
      return rows.map(fromRow)
    },
    detachEnvironment: async (id) => {
      const rows = await db
        .updateTable('conversations')
        .set({ environment_id: null })
        .where('environment_id', '=', id)
        .returningAll()
        .execute()
      // As they were before the update.
      return rows.map((row) => fromRow({ ...row, environment_id: id }))
    },
  }
}

const patchColumns = {
  codebaseId: 'codebase_id',
  environmentId: 'environment_id',
  agent: 'agent',
  lastActivityAt: 'last_activity_at',
  closedAt: 'closed_at',
} as const

const toRow = (conversation: Conversation): ConversationRow => ({
  id: conversation.id,
  platform: conversation.platform,
  conversation_id: conversation.conversationId,
  codebase_id: orNull(conversation.codebaseId),
  former_codebase_id: conversation.formerCodebase?.id ?? null,
  former_codebase_name: conversation.formerCodebase?.name ?? null,
  environment_id: orNull(conversation.environmentId),
  persistent: toFlag(conversation.persistent),
  agent: orNull(conversation.agent),
  last_activity_at: conversation.lastActivityAt,
  closed_at: orNull(conversation.closedAt),
  created_at: conversation.createdAt,
})

const fromRow = (row: ConversationRow): Conversation => ({
  id: row.id,
  platform: row.platform,
  conversationId: row.conversation_id,
  codebaseId: row.codebase_id === null ? undefined : toCodebaseId(row.codebase_id),
  ...(row.former_codebase_id !== null && {
    formerCodebase: { id: toCodebaseId(row.former_codebase_id), name: row.former_codebase_name || undefined },
  }),
  environmentId: row.environment_id === null ? undefined : toEnvironmentId(row.environment_id),
  persistent: fromFlag(row.persistent),
  agent: orUndefined(row.agent),
  lastActivityAt: row.last_activity_at,
  closedAt: orUndefined(row.closed_at),
  createdAt: row.created_at,
})

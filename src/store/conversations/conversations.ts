/*
 * What is stored about conversations. In: a conversation's rows, sessions and replies, and what platforms keep. Out: the
 * same, in order.
 */
import type { Kysely } from 'kysely'
import { toCodebaseId, toEnvironmentId } from '../../domain/names.ts'
import type { WorkType } from '../../domain/work.ts'
import { type Engine, inTransaction } from '../engine.ts'
import { fromFlag, orNull, orUndefined, patchedColumns, toFlag } from '../rows.ts'
import type { Conversation, ConversationPatch, ConversationStore } from '../store.ts'
import type { ConversationRow, Tables } from '../tables.ts'

export const conversationStore = (db: Kysely<Tables>, engine: Pick<Engine, 'isUniqueViolation'>): ConversationStore => {
  const find: ConversationStore['find'] = async (platform, conversationId) => {
    const row = await db
      .selectFrom('conversations')
      .selectAll()
      .where('platform', '=', platform)
      .where('conversation_id', '=', conversationId)
      .executeTakeFirst()
    return row === undefined ? undefined : fromConversationRow(row)
  }
  return {
    find,
    findImported: async (platform, importedAs) => {
      const row = await db
        .selectFrom('conversations')
        .selectAll()
        .where('platform', '=', platform)
        .where('imported_as', '=', importedAs)
        .executeTakeFirst()
      return row === undefined ? undefined : fromConversationRow(row)
    },
    renameImported: async ({ platform, conversationId }, importedAs) => {
      if ((await find(platform, conversationId)) !== undefined) return undefined
      const renamed = db
        .updateTable('conversations')
        .set({ conversation_id: conversationId })
        .where('platform', '=', platform)
        .where('imported_as', '=', importedAs)
        .where('conversation_id', '=', importedAs)
        .returningAll()
      try {
        const row = await renamed.executeTakeFirst()
        return row === undefined ? undefined : fromConversationRow(row)
      } catch (error) {
        // Another message of the same thread was faster.
        if (engine.isUniqueViolation(error)) return undefined
        throw error
      }
    },
    ensure: async (conversation) => {
      const known = await find(conversation.platform, conversation.conversationId)
      if (known !== undefined) return known
      await inTransaction(db, async (transaction) => {
        const { numInsertedOrUpdatedRows } = await transaction
          .insertInto('conversations')
          .values(toRow(conversation))
          .onConflict((conflict) => conflict.columns(['platform', 'conversation_id']).doNothing())
          .executeTakeFirst()
        if (numInsertedOrUpdatedRows === 1n) await markPersistent(transaction, conversation)
      })
      return (await find(conversation.platform, conversation.conversationId)) ?? conversation
    },
    update: async (id, patch) => {
      const set = {
        ...patchedColumns<Omit<ConversationPatch, 'work'>, ConversationRow>(patch, patchColumns),
        ...(patch.codebaseId !== undefined && { former_codebase_id: null, former_codebase_name: null }),
        ...(patch.work !== undefined && { work_type: patch.work.type, work_id: patch.work.id }),
      }
      if (Object.keys(set).length === 0) return
      const updateIn = (inside: Kysely<Tables>) =>
        inside.updateTable('conversations').set(set).where('id', '=', id).execute()
      if (patch.environmentId === undefined && patch.codebaseId === undefined) {
        await updateIn(db)
        return
      }
      await inTransaction(db, async (transaction) => {
        // The environment first, as a removal does, so that the two never wait for each other.
        await markPersistent(transaction, { id, environmentId: patch.environmentId })
        if (patch.codebaseId !== undefined) await forgetWorkElsewhere(transaction, id, patch.codebaseId)
        await updateIn(transaction)
      })
    },
    get: async (id) => {
      const row = await db.selectFrom('conversations').selectAll().where('id', '=', id).executeTakeFirst()
      return row === undefined ? undefined : fromConversationRow(row)
    },
    recent: async ({ platform, codebaseId, limit }) => {
      const all = db.selectFrom('conversations').selectAll()
      const ofPlatform = platform === undefined ? all : all.where('platform', '=', platform)
      const filtered = codebaseId === undefined ? ofPlatform : ofPlatform.where('codebase_id', '=', codebaseId)
      return (await filtered.orderBy('last_activity_at', 'desc').orderBy('id').limit(limit).execute()).map(
        fromConversationRow,
      )
    },
    ofEnvironments: async (ids) => {
      if (ids.length === 0) return []
      const rows = await db.selectFrom('conversations').selectAll().where('environment_id', 'in', ids).execute()
      return rows.map(fromConversationRow)
    },
    detachEnvironment: async (id) => {
      const rows = await db
        .updateTable('conversations')
        .set({ environment_id: null })
        .where('environment_id', '=', id)
        .returningAll()
        .execute()
      // As they were before the update.
      return rows.map((row) => fromConversationRow({ ...row, environment_id: id }))
    },
    wasTold: async (conversation, notice) => {
      const told = db.selectFrom('told').select('told_at').where('conversation', '=', conversation)
      return (await told.where('notice', '=', notice).executeTakeFirst()) !== undefined
    },
    tellOnce: async (conversation, notice, at) => {
      const result = await db
        .insertInto('told')
        .values({ conversation, notice, told_at: at })
        .onConflict((conflict) => conflict.columns(['conversation', 'notice']).doNothing())
        .executeTakeFirst()
      return result.numInsertedOrUpdatedRows === 1n
    },
  }
}

/** With the reference, since the conversation may work elsewhere later, and the environment stays its user's. */
const markPersistent = async (
  db: Kysely<Tables>,
  { id, environmentId }: Pick<Conversation, 'id' | 'environmentId'>,
): Promise<void> => {
  if (environmentId === undefined) return
  await db
    .updateTable('environments')
    .set({ persistent: 1 })
    .where('id', '=', environmentId)
    .where('persistent', '=', 0)
    .where((eb) =>
      eb.exists(
        eb
          .selectFrom('conversations')
          .select('conversations.id')
          .where('conversations.id', '=', id)
          .where('conversations.persistent', '=', 1),
      ),
    )
    .execute()
}

/** Numbers are a repository's: issue 42 of the previous one isn't issue 42 of this one. */
const forgetWorkElsewhere = async (db: Kysely<Tables>, id: string, codebaseId: string): Promise<void> => {
  await db
    .updateTable('conversations')
    .set({ work_type: null, work_id: null })
    .where('id', '=', id)
    .where((eb) => eb(eb.fn.coalesce('codebase_id', 'former_codebase_id'), '!=', codebaseId))
    .execute()
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
  imported_as: orNull(conversation.importedAs),
  last_activity_at: conversation.lastActivityAt,
  closed_at: orNull(conversation.closedAt),
  created_at: conversation.createdAt,
  work_type: conversation.work?.type ?? null,
  work_id: conversation.work?.id ?? null,
})

const fromConversationRow = (row: ConversationRow): Conversation => ({
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
  ...(row.imported_as !== null && { importedAs: row.imported_as }),
  lastActivityAt: row.last_activity_at,
  closedAt: orUndefined(row.closed_at),
  createdAt: row.created_at,
  ...(row.work_type !== null && row.work_id !== null && { work: { type: row.work_type as WorkType, id: row.work_id } }),
})

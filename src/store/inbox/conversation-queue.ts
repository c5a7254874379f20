import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Engine } from '../engine.ts'
import type { ConversationKey } from '../store.ts'
import type { Tables } from '../tables.ts'

/**
 * A conversation's messages in the lane `turn` form a queue. Only its first open one, waiting or running, is `ready`.
 * So `claim` checks one row instead of scanning everything behind a running message.
 *
 * To change a queue (add a message when accepted, remove it when done), use a transaction, hold the queue's lock until
 * it ends, and call this last. SQLite has one writer anyway. PostgreSQL needs the lock: otherwise an added message
 * would see a first one that is just leaving, which in turn wouldn't see the new one, and the message would wait
 * forever.
 *
 * The lock also ensures the order: `seq` is assigned at insert and visible at commit, so of two concurrent accepts the
 * later number may be visible first. Not within a conversation, since numbers are assigned under its lock; between
 * conversations nothing depends on it.
 */
export const markFirstReady = async (db: Kysely<Tables>, queues: readonly ConversationKey[]): Promise<void> => {
  for (let first = 0; first < queues.length; first += queuesPerStatement) {
    await sql`
      update inbox set ready = 1 where ready = 0 and seq in (
        select (
          select min(seq) from inbox as open
          where open.platform = line.column1 and open.conversation_id = line.column2
            and open.lane = 'turn' and open.state <> 'done'
        ) from (values ${keyList(queues.slice(first, first + queuesPerStatement))}) as line
      )`.execute(db)
  }
}

export const lockQueues = (db: Kysely<Tables>, engine: Engine, queues: readonly ConversationKey[]): Promise<void> =>
  engine.lockQueues(
    db,
    queues.map(({ platform, conversationId }) => `${platform}\n${conversationId}`),
  )

/** Without duplicates, in order of first appearance. */
export const distinctKeys = (keys: readonly ConversationKey[]): ConversationKey[] => [
  ...new Map(
    keys.map(({ platform, conversationId }) => [`${platform}\n${conversationId}`, { platform, conversationId }]),
  ).values(),
]

/** For `values`, whose columns both engines name `column1` and `column2`. */
export const keyList = (keys: readonly ConversationKey[]): RawBuilder<unknown> =>
  sql.join(keys.map(({ platform, conversationId }) => sql`(${platform}, ${conversationId})`))

/** Two parameters per queue; SQLite allows 32,766 per statement. */
export const queuesPerStatement = 1000

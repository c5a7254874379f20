import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Engine } from '../engine.ts'
import type { ConversationKey } from '../store.ts'
import type { Tables } from '../tables.ts'

/**
 * A conversation's messages of the lane `turn` stand in a line. Its first open one, waiting or running, is `ready`;
 * no other is. So `claim` looks at one row instead of walking past everything that stands behind a running one.
 *
 * Whoever changes a line (a message joins at acceptance, leaves when done) does it in a transaction, holds the line's
 * lock until the end of it, and calls this last. SQLite has one writer anyway. For PostgreSQL the lock is what makes
 * it true: without it, one who joins would see a first that is just leaving, the one who leaves would not see who
 * joins, and the message would wait for ever.
 *
 * The lock also gives the order: `seq` is taken at the insert and seen by others at the commit, so that of two
 * concurrent accepts the later number may be seen first. Within one conversation that cannot be, since numbers are
 * taken under its lock; between conversations nothing depends on it.
 */
export const makeFirstReady = async (db: Kysely<Tables>, lines: readonly ConversationKey[]): Promise<void> => {
  for (let first = 0; first < lines.length; first += linesPerStatement) {
    await sql`
      update inbox set ready = 1 where ready = 0 and seq in (
        select (
          select min(seq) from inbox as open
          where open.platform = line.column1 and open.conversation_id = line.column2
            and open.lane = 'turn' and open.state <> 'done'
        ) from (values ${keyList(lines.slice(first, first + linesPerStatement))}) as line
      )`.execute(db)
  }
}

export const lockLines = (db: Kysely<Tables>, engine: Engine, lines: readonly ConversationKey[]): Promise<void> =>
  engine.lockLines(
    db,
    lines.map(({ platform, conversationId }) => `${platform}\n${conversationId}`),
  )

/** Each once, in the order in which it is first named. */
export const distinctKeys = (keys: readonly ConversationKey[]): ConversationKey[] => [
  ...new Map(
    keys.map(({ platform, conversationId }) => [`${platform}\n${conversationId}`, { platform, conversationId }]),
  ).values(),
]

/** For `values`, whose columns both engines call `column1` and `column2`. */
export const keyList = (keys: readonly ConversationKey[]): RawBuilder<unknown> =>
  sql.join(keys.map(({ platform, conversationId }) => sql`(${platform}, ${conversationId})`))

/** Two parameters a line; SQLite takes 32,766 in one statement. */
export const linesPerStatement = 1000

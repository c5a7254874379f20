import { sql, type Transaction } from 'kysely'
import type { Engine } from '../engine.ts'
import type { Tables } from '../tables.ts'

/** Never edited once landed. Money is counted in millionths of a dollar: sums of fractions would not add up. */
export const up = async (transaction: Transaction<Tables>, engine: Engine): Promise<void> => {
  for (const statement of statements(engine)) await sql.raw(statement).execute(transaction)
}

const statements = (engine: Engine): string[] => [
  `create table usage (
    id text primary key, conversation text not null references conversations (id) on delete cascade,
    agent text not null, cost_micros bigint, input_tokens bigint, output_tokens bigint, turns bigint not null,
    at bigint not null)`,
  `create table budget_raises (
    id text primary key, conversation text not null references conversations (id) on delete cascade,
    micros bigint not null, turns bigint not null, at bigint not null)`,
  // A whole copy: the message itself is done, and what is done is forgotten some day.
  `create table paused_messages (
    seq ${engine.countingKey}, inbox_id text not null unique,
    conversation text not null references conversations (id) on delete cascade, text text not null,
    details text not null, at bigint not null)`,
  `create index usage_conversation on usage (conversation)`,
  `create index usage_at on usage (at)`,
  `create index budget_raises_conversation on budget_raises (conversation)`,
  `create index budget_raises_at on budget_raises (at)`,
  `create index paused_messages_conversation on paused_messages (conversation, seq)`,
]

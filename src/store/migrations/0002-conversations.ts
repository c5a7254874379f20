import { sql, type Transaction } from 'kysely'
import type { Engine } from '../engine.ts'
import type { Tables } from '../tables.ts'

/**
 * Never edited once landed. Inbox and outbox name a conversation by its platform's id and have no foreign key on it:
 * a message is accepted before anybody has looked at what it says, and its conversation begins when it is handled.
 */
export const up = async (transaction: Transaction<Tables>, engine: Engine): Promise<void> => {
  for (const statement of [...tables(engine), ...indexes]) await sql.raw(statement).execute(transaction)
}

const tables = (engine: Engine): string[] => [
  `alter table conversations add column agent text`,
  `create table sessions (
    id text primary key, conversation text not null references conversations (id) on delete cascade,
    agent text not null, agent_session_id text, directory text not null, started_at bigint not null,
    last_used_at bigint not null, ended_at bigint, end_reason text)`,
  // `ready`: nothing of its line is before it. How that stays true is said in inbox-line.ts.
  `create table inbox (
    seq ${engine.countingKey}, id text not null unique, platform text not null, conversation_id text not null,
    delivery_id text not null, kind text not null, text text not null, details text not null, lane text not null,
    state text not null, ready integer not null, accepted_at bigint not null, attempts integer not null,
    put_backs integer not null,
    holder_host text, holder_pid bigint, holder_start_time text, child_pid bigint, child_start_time text,
    unique (platform, delivery_id),
    check (lane in ('turn', 'at-once')), check (state in ('waiting', 'running', 'done')))`,
  `create table outbox (
    seq ${engine.countingKey}, id text not null unique, platform text not null, conversation_id text not null,
    inbox_id text, key text not null, role text not null, text text not null, state text not null,
    attempts integer not null, sent_parts integer not null, next_attempt_at bigint not null,
    created_at bigint not null, sent_at bigint, error text,
    unique (inbox_id, key), check (state in ('waiting', 'sent', 'failed')))`,
]

/** What is done stays for weeks, to recognise a delivery: whatever is asked often has an index without it. */
const indexes: readonly string[] = [
  `create index conversations_activity on conversations (last_activity_at)`,
  `create unique index sessions_live on sessions (conversation) where ended_at is null`,
  `create index sessions_conversation on sessions (conversation)`,
  // Two that are ready in one line would be two runs in one worktree.
  `create unique index inbox_ready on inbox (platform, conversation_id) where lane = 'turn' and ready = 1`,
  `create index inbox_claim on inbox (lane, seq, platform) where state = 'waiting' and ready = 1`,
  `create index inbox_line on inbox (platform, conversation_id, lane, seq) where state <> 'done'`,
  `create index inbox_waiting on inbox (accepted_at, seq) where state = 'waiting'`,
  `create index inbox_running on inbox (seq) where state = 'running'`,
  `create index inbox_done on inbox (accepted_at) where state = 'done'`,
  `create index inbox_conversation on inbox (platform, conversation_id, seq)`,
  `create index outbox_line on outbox (platform, conversation_id, seq) where state = 'waiting'`,
  `create index outbox_waiting on outbox (seq, platform, conversation_id, next_attempt_at) where state = 'waiting'`,
  `create index outbox_failed on outbox (seq) where state = 'failed'`,
  `create index outbox_sent on outbox (sent_at) where state = 'sent'`,
  `create index outbox_conversation on outbox (platform, conversation_id, seq)`,
]

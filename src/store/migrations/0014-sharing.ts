import { sql, type Transaction } from 'kysely'
import type { Tables } from '../tables.ts'

/**
 * Never edited once landed. Which issue or pull request a conversation is about was only in its messages: the newest one
 * that is still there says it. `told` has the notices that a conversation gets only once.
 */
export const up = async (transaction: Transaction<Tables>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(transaction)
  await sql`insert into told (conversation, notice, told_at)
    select id, 'place:' || environment_id, 0 from conversations where environment_id is not null`.execute(transaction)
  const { rows } = await sql<{ platform: string; conversation_id: string; details: string }>`
    select platform, conversation_id, details from inbox where details like '%"workflowType"%' order by seq`.execute(
    transaction,
  )
  for (const { platform, conversation_id, details } of rows) {
    const { workflowType, workflowId } = hintsIn(details)
    if (!isText(workflowType) || !isText(workflowId) || !numbered.includes(workflowType)) continue
    await sql`update conversations set work_type = ${workflowType}, work_id = ${workflowId}
      where platform = ${platform} and conversation_id = ${conversation_id}`.execute(transaction)
  }
}

const statements: readonly string[] = [
  `alter table conversations add column work_type text`,
  `alter table conversations add column work_id text`,
  `create table told (
    conversation text not null references conversations (id) on delete cascade, notice text not null,
    told_at bigint not null, primary key (conversation, notice))`,
]

const numbered: readonly string[] = ['issue', 'pr', 'review']

const isText = (value: unknown): value is string => typeof value === 'string'

const hintsIn = (details: string): { workflowType?: unknown; workflowId?: unknown } => {
  const { hints } = JSON.parse(details) as { hints?: unknown }
  return typeof hints === 'object' && hints !== null ? hints : {}
}

import type { Kysely } from 'kysely'
import type { MessageDetails } from '../domain/message.ts'
import { orNull } from './rows.ts'
import type { Tables } from './tables.ts'

/** What one run of an agent used, as far as it reported. */
export type UsageRow = {
  readonly id: string
  /** The id of the conversation's row. */
  readonly conversation: string
  readonly agent: string
  /** Millionths of a dollar; undefined if not reported. */
  readonly costMicros: number | undefined
  readonly inputTokens: number | undefined
  readonly outputTokens: number | undefined
  readonly turns: number
  readonly at: number
}

/** A budget increase: permanent for this conversation, and for everyone on that day. */
export type BudgetRaise = {
  readonly id: string
  readonly conversation: string
  readonly micros: number
  readonly turns: number
  readonly at: number
}

/** A message that waits for more budget. It was answered, so it blocks nothing; this is what remains. */
export type PausedMessage = {
  readonly inboxId: string
  readonly conversation: string
  readonly text: string
  readonly details: MessageDetails
  readonly at: number
}

/** By conversation, time, or both. */
export type UsageFilter = { readonly conversation?: string; readonly since?: number }

export type UsageStore = {
  add(usage: UsageRow): Promise<void>
  spent(filter: UsageFilter): Promise<{ micros: number; turns: number; runs: number }>
  /** True if it is new: raising is idempotent by id. */
  raise(raise: BudgetRaise): Promise<boolean>
  raised(filter: UsageFilter): Promise<{ micros: number; turns: number }>
  pause(message: PausedMessage): Promise<void>
  paused(conversation: string): Promise<number>
  /** Removes and returns them, in the order paused. */
  takePaused(conversation: string): Promise<PausedMessage[]>
}

export const usageStore = (db: Kysely<Tables>): UsageStore => ({
  add: async (usage) => {
    await db
      .insertInto('usage')
      .values({
        id: usage.id,
        conversation: usage.conversation,
        agent: usage.agent,
        cost_micros: orNull(usage.costMicros),
        input_tokens: orNull(usage.inputTokens),
        output_tokens: orNull(usage.outputTokens),
        turns: usage.turns,
        at: usage.at,
      })
      .execute()
  },
  spent: async ({ conversation, since }) => {
    const row = await db
      .selectFrom('usage')
      .select(({ fn }) => [fn.sum('cost_micros').as('micros'), fn.sum('turns').as('turns'), fn.countAll().as('runs')])
      .$if(conversation !== undefined, (query) => query.where('conversation', '=', conversation ?? ''))
      .$if(since !== undefined, (query) => query.where('at', '>=', since ?? 0))
      .executeTakeFirst()
    return { micros: Number(row?.micros ?? 0), turns: Number(row?.turns ?? 0), runs: Number(row?.runs ?? 0) }
  },
  raise: async (raise) => {
    const result = await db
      .insertInto('budget_raises')
      .values({ ...raise })
      .onConflict((conflict) => conflict.column('id').doNothing())
      .executeTakeFirst()
    return result.numInsertedOrUpdatedRows === 1n
  },
  raised: async ({ conversation, since }) => {
    const row = await db
      .selectFrom('budget_raises')
      .select(({ fn }) => [fn.sum('micros').as('micros'), fn.sum('turns').as('turns')])
      .$if(conversation !== undefined, (query) => query.where('conversation', '=', conversation ?? ''))
      .$if(since !== undefined, (query) => query.where('at', '>=', since ?? 0))
      .executeTakeFirst()
    return { micros: Number(row?.micros ?? 0), turns: Number(row?.turns ?? 0) }
  },
  pause: async ({ inboxId, conversation, text, details, at }) => {
    await db
      .insertInto('paused_messages')
      .values({ inbox_id: inboxId, conversation, text, details: JSON.stringify(details), at })
      .onConflict((conflict) => conflict.column('inbox_id').doNothing())
      .execute()
  },
  paused: async (conversation) => {
    const row = await db
      .selectFrom('paused_messages')
      .select(({ fn }) => fn.countAll().as('count'))
      .where('conversation', '=', conversation)
      .executeTakeFirst()
    return Number(row?.count ?? 0)
  },
  takePaused: async (conversation) => {
    const rows = await db
      .deleteFrom('paused_messages')
      .where('conversation', '=', conversation)
      .returningAll()
      .execute()
    return rows
      .sort((a, b) => a.seq - b.seq)
      .map((row) => ({
        inboxId: row.inbox_id,
        conversation: row.conversation,
        text: row.text,
        // Written by `pause` from the same type.
        details: JSON.parse(row.details) as MessageDetails,
        at: row.at,
      }))
  },
})

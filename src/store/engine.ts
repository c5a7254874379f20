import type { Kysely, Transaction } from 'kysely'
import type { AppError } from '../domain/errors.ts'
import type { Tables } from './tables.ts'

/** What differs between the engines, as capabilities; the statements are the same. */
export type Engine = {
  readonly name: 'sqlite' | 'postgres'
  /**
   * Writers are concurrent, so lock a row before deciding about it. SQLite has one writer at a time: its transactions
   * start by becoming that writer.
   */
  readonly rowLocks: boolean
  /** The type of an auto-incrementing column. */
  readonly countingKey: string
  /** Held until the transaction ends, so processes that start together migrate in turn. */
  lockMigrations(transaction: Transaction<Tables>): Promise<void>
  /** Held until the transaction ends, to decide about these queues of messages. Equal strings share a lock. */
  lockQueues(transaction: Kysely<Tables>, queues: readonly string[]): Promise<void>
  isMissingTable(error: unknown): boolean
  isUniqueViolation(error: unknown): boolean
}

/** An open database, before migration. */
export type Database = {
  readonly db: Kysely<Tables>
  readonly engine: Engine
  /** Connections acquired and not yet released. */
  inUse(): number
  /** Calls back if the open database was deleted or replaced; returns a function that unsubscribes. */
  onLost(listener: (error: AppError) => void): () => void
  /** Waits for running work; a connection not released in time is an error, not a hang. */
  close(): Promise<void>
}

/** Joins the current transaction, or starts one. */
export const inTransaction = <T>(db: Kysely<Tables>, work: (db: Kysely<Tables>) => Promise<T>): Promise<T> =>
  db.isTransaction ? work(db) : db.transaction().execute(work)

import type { Kysely, Transaction } from 'kysely'
import type { AppError } from '../domain/errors.ts'
import type { Tables } from './tables.ts'

/** What differs between the engines, as capabilities; the statements themselves are the same. */
export type Engine = {
  readonly name: 'sqlite' | 'postgres'
  /**
   * Writers run side by side, so a row must be locked before a decision about it.
   * SQLite has one writer at a time: its transactions begin by becoming that writer.
   */
  readonly rowLocks: boolean
  /** The type of a column that counts up by itself. */
  readonly countingKey: string
  /** Held until the transaction ends; two processes that start together migrate one after the other. */
  lockMigrations(transaction: Transaction<Tables>): Promise<void>
  /** Held until the transaction ends, for who decides about these lines of messages. Alike texts, one lock. */
  lockLines(transaction: Kysely<Tables>, lines: readonly string[]): Promise<void>
  isMissingTable(error: unknown): boolean
  isUniqueViolation(error: unknown): boolean
}

/** An opened database, before anything is known about its tables. */
export type Database = {
  readonly db: Kysely<Tables>
  readonly engine: Engine
  /** Connections that were taken and not given back yet. */
  inUse(): number
  /** Calls back when the database is no longer the one that was opened; answers what takes that back. */
  onLost(listener: (error: AppError) => void): () => void
  /** Waits for what is running; a connection that is not given back in time is an error, not a hang. */
  close(): Promise<void>
}

/** Joins the transaction that `db` already is, or begins one. */
export const inTransaction = <T>(db: Kysely<Tables>, work: (db: Kysely<Tables>) => Promise<T>): Promise<T> =>
  db.isTransaction ? work(db) : db.transaction().execute(work)

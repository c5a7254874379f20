import { BoundedMap } from '../../domain/bounded-map.ts'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import type { CompiledQuery, DatabaseConnection, Driver, QueryResult } from 'kysely'
import { AppError } from '../../domain/errors.ts'
import { busyFor, explained, isBusy } from './errors.ts'
import { SqliteFile } from './file.ts'
import { Turn } from '../turn.ts'

export type SqlitePatience = {
  /** How long another process may hold the database before we give up, in milliseconds. */
  readonly busy: number
  /** How long one transaction of this process may keep others of this process waiting. */
  readonly turn: number
}

/**
 * `node:sqlite` behind Kysely: one connection, taken in turns. SQLite's own busy handler would block the event loop,
 * so its time-out is 0 and we wait asynchronously, where waiting is safe: at BEGIN and COMMIT and at a statement
 * outside a transaction.
 */
export class SqliteDriver implements Driver {
  readonly #file: string
  readonly #patience: SqlitePatience
  readonly #turn: Turn
  readonly file: SqliteFile
  #database: DatabaseSync | undefined
  #connection: SqliteConnection | undefined

  constructor(file: string, patience: SqlitePatience) {
    this.#file = file
    this.#patience = patience
    this.#turn = new Turn(patience.turn)
    this.file = new SqliteFile(file)
  }

  get inUse(): number {
    return this.#turn.inUse
  }

  async init(): Promise<void> {
    try {
      this.#database = new DatabaseSync(this.#file, { timeout: 0, enableForeignKeyConstraints: true })
    } catch (error) {
      throw explained(error, this.#file)
    }
    this.file.opened()
    this.#connection = new SqliteConnection(this.#database, this.file, this.#file, this.#patience.busy)
    try {
      // The mode stays in the file; changing it needs the file for oneself, hence the same patience as for a BEGIN.
      await this.#connection.command('pragma journal_mode = wal')
      await this.#connection.command('pragma synchronous = full')
    } catch (error) {
      this.#database.close()
      throw error
    }
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    await this.#turn.take()
    try {
      if (this.#connection === undefined) throw new AppError('store-failed', `the database ${this.#file} is closed`)
      this.file.check()
      return this.#connection
    } catch (error) {
      this.#turn.give()
      throw error
    }
  }

  async releaseConnection(): Promise<void> {
    this.#turn.give()
  }

  /** Immediate: a transaction that reads first and writes later could not be retried half-way. */
  async beginTransaction(): Promise<void> {
    await this.#connection?.command('begin immediate')
  }

  /** What was committed to a file that nobody can open again is not recorded, whatever SQLite says. */
  async commitTransaction(): Promise<void> {
    await this.#connection?.command('commit')
    this.file.check()
  }

  async rollbackTransaction(): Promise<void> {
    // A full disk makes SQLite roll back by itself, and a second rollback would hide the first error.
    if (this.#database?.isTransaction === true) await this.#connection?.command('rollback')
  }

  /** Waits for its turn, so that what is running ends first; a leaked connection becomes an error here. */
  async destroy(): Promise<void> {
    try {
      await this.#turn.take()
    } finally {
      this.file.close()
      this.#database?.close()
      this.#database = undefined
      this.#connection = undefined
    }
    this.#turn.give()
  }
}

type Prepared = { readonly statement: StatementSync; readonly reads: boolean }

/** Statements differ by the length of their `in` lists, so there is a bound; preparing one anew takes about 20 µs. */
const preparedLimit = 200

class SqliteConnection implements DatabaseConnection {
  readonly #database: DatabaseSync
  readonly #opened: SqliteFile
  readonly #file: string
  readonly #patience: number
  readonly #prepared = new BoundedMap<string, Prepared>(preparedLimit)

  constructor(database: DatabaseSync, opened: SqliteFile, file: string, patience: number) {
    this.#database = database
    this.#opened = opened
    this.#file = file
    this.#patience = patience
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    // Inside a transaction we are the writer already: nothing there is worth waiting for.
    const run = () => this.#run<R>(query.sql, query.parameters as readonly SQLInputValue[])
    if (this.#database.isTransaction) return this.#explain(run)
    const result = await this.#whileBusy(run)
    if (result.numAffectedRows !== undefined) this.#opened.check()
    return result
  }

  // oxlint-disable-next-line require-yield
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('the store does not stream')
  }

  async command(sql: string): Promise<void> {
    await this.#whileBusy(() => this.#database.exec(sql))
  }

  #run<R>(sql: string, parameters: readonly SQLInputValue[]): QueryResult<R> {
    const { statement, reads } = this.#prepare(sql)
    if (reads) return { rows: statement.all(...parameters) as R[] }
    return { rows: [], numAffectedRows: BigInt(statement.run(...parameters).changes) }
  }

  #prepare(sql: string): Prepared {
    const known = this.#prepared.get(sql)
    if (known !== undefined) return known
    const statement = this.#database.prepare(sql)
    const prepared = { statement, reads: statement.columns().length > 0 }
    this.#prepared.set(sql, prepared)
    return prepared
  }

  async #whileBusy<T>(attempt: () => T): Promise<T> {
    let waited = 0
    for (let delay = 2; ; delay = Math.min(delay * 2, 50)) {
      try {
        return attempt()
      } catch (error) {
        if (!isBusy(error)) throw explained(error, this.#file)
        if (waited >= this.#patience) throw busyFor(this.#file, waited, error)
      }
      // Jitter, so that two processes that met once do not meet again at every try.
      const jittered = Math.ceil(delay * (0.5 + Math.random()))
      waited += jittered
      await pause(jittered)
    }
  }

  #explain<T>(attempt: () => T): T {
    try {
      return attempt()
    } catch (error) {
      throw explained(error, this.#file)
    }
  }
}

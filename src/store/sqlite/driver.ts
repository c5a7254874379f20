import { BoundedMap } from '../../domain/bounded-map.ts'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import type { CompiledQuery, DatabaseConnection, Driver, QueryResult } from 'kysely'
import { AppError } from '../../domain/errors.ts'
import { busyError, explainError, isBusy } from './errors.ts'
import { SqliteFile } from './file.ts'
import { Mutex } from '../mutex.ts'

export type SqliteTimeouts = {
  /** How long another process may hold the database before we give up, in milliseconds. */
  readonly busy: number
  /** How long a transaction may keep others in this process waiting. */
  readonly turn: number
}

/**
 * `node:sqlite` behind Kysely: one connection, used in turns. SQLite's busy handler would block the event loop, so its
 * timeout is 0 and we wait asynchronously where that is safe: at BEGIN, at COMMIT and for statements outside a
 * transaction.
 */
export class SqliteDriver implements Driver {
  readonly #file: string
  readonly #timeouts: SqliteTimeouts
  readonly #mutex: Mutex
  readonly file: SqliteFile
  #database: DatabaseSync | undefined
  #connection: SqliteConnection | undefined
  #turnedAt = Number.NEGATIVE_INFINITY

  constructor(file: string, timeouts: SqliteTimeouts) {
    this.#file = file
    this.#timeouts = timeouts
    this.#mutex = new Mutex(timeouts.turn)
    this.file = new SqliteFile(file)
  }

  get inUse(): number {
    return this.#mutex.inUse
  }

  async init(): Promise<void> {
    try {
      this.#database = new DatabaseSync(this.#file, { timeout: 0, enableForeignKeyConstraints: true })
    } catch (error) {
      throw explainError(error, this.#file)
    }
    this.file.opened()
    this.#connection = new SqliteConnection(this.#database, this.file, this.#file, this.#timeouts.busy)
    try {
      // The mode is stored in the file; changing it needs exclusive access, so wait as for a BEGIN.
      await this.#connection.command('pragma journal_mode = wal')
      await this.#connection.command('pragma synchronous = full')
    } catch (error) {
      this.#database.close()
      throw error
    }
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    if (performance.now() - this.#turnedAt > MOST_MS_PER_TURN) {
      await nextTurn()
      this.#turnedAt = performance.now()
    }
    await this.#mutex.acquire()
    try {
      if (this.#connection === undefined) throw new AppError('store-failed', `the database ${this.#file} is closed`)
      this.file.checkNowAndThen()
      return this.#connection
    } catch (error) {
      this.#mutex.release()
      throw error
    }
  }

  async releaseConnection(): Promise<void> {
    this.#mutex.release()
  }

  /** Immediate: a transaction that reads first and writes later couldn't be retried half-way. */
  async beginTransaction(): Promise<void> {
    await this.#connection?.command('begin immediate')
  }

  /** A commit to a file that nobody can open again isn't durable, whatever SQLite says. */
  async commitTransaction(): Promise<void> {
    await this.#connection?.command('commit')
    this.file.check()
  }

  async rollbackTransaction(): Promise<void> {
    // On a full disk SQLite rolls back by itself; a second rollback would hide the first error.
    if (this.#database?.isTransaction === true) await this.#connection?.command('rollback')
  }

  /** Waits for its turn, so running work finishes; a leaked connection becomes an error here. */
  async destroy(): Promise<void> {
    try {
      await this.#mutex.acquire()
    } finally {
      this.file.close()
      this.#database?.close()
      this.#database = undefined
      this.#connection = undefined
    }
    this.#mutex.release()
  }
}

/**
 * Statements are answered at once, so work that awaits nothing else would never let the event loop turn: messages that
 * were processed one after the other kept the server from reading its sockets for seconds.
 */
const MOST_MS_PER_TURN = 5

type Prepared = { readonly statement: StatementSync; readonly reads: boolean }

/** Statements differ by the length of their `in` lists, hence a limit; preparing one takes about 20 µs. */
const preparedLimit = 200

class SqliteConnection implements DatabaseConnection {
  readonly #database: DatabaseSync
  readonly #opened: SqliteFile
  readonly #file: string
  readonly #busyTimeoutMs: number
  readonly #prepared = new BoundedMap<string, Prepared>(preparedLimit)

  constructor(database: DatabaseSync, opened: SqliteFile, file: string, busyTimeoutMs: number) {
    this.#database = database
    this.#opened = opened
    this.#file = file
    this.#busyTimeoutMs = busyTimeoutMs
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    // Inside a transaction we are already the writer, so there is nothing to wait for.
    const run = () => this.#run<R>(query.sql, query.parameters as readonly SQLInputValue[])
    if (this.#database.isTransaction) return this.#explain(run)
    const result = await this.#whileBusy(run)
    if (result.numAffectedRows !== undefined) this.#opened.check()
    return result
  }

  // oxlint-disable-next-line require-yield
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error("the store doesn't support streaming")
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
        if (!isBusy(error)) throw explainError(error, this.#file)
        if (waited >= this.#busyTimeoutMs) throw busyError(this.#file, waited, error)
      }
      // Jitter, so that two processes don't collide at every retry.
      const jittered = Math.ceil(delay * (0.5 + Math.random()))
      waited += jittered
      await pause(jittered)
    }
  }

  #explain<T>(attempt: () => T): T {
    try {
      return attempt()
    } catch (error) {
      throw explainError(error, this.#file)
    }
  }
}

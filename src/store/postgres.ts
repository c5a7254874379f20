import { Kysely, PostgresDialect, sql } from 'kysely'
import type * as Pg from 'pg'
import { AppError } from '../domain/errors.ts'
import type { Database, Engine } from './engine.ts'
import type { Tables } from './tables.ts'

export type PostgresTimeouts = {
  /** How long to wait for a connection, a lock, and on close for connections to be released; in milliseconds. */
  readonly wait: number
}

/** `pg` is loaded only here: the default engine must not pay for it at every start. */
export const openPostgres = async (url: string, timeouts: Partial<PostgresTimeouts> = {}): Promise<Database> => {
  const wait = timeouts.wait ?? 30_000
  const pg = await import('pg')
  const pool = makePool(pg, url, wait)
  // A restarting server closes idle connections; unhandled, that event would end our process. The pool reconnects.
  pool.on('error', () => {})
  // The same for a connection in use, which the pool ignores. Its user gets an error as well.
  pool.on('connect', (client) => client.on('error', () => {}))
  try {
    const client = await pool.connect()
    client.release()
  } catch (error) {
    await pool.end()
    throw connectionError(url, error)
  }
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  const inUse = () => pool.totalCount - pool.idleCount
  // The server owns the database: its file can't be removed under us.
  const onLost = () => () => undefined
  return { db, engine: postgres, inUse, onLost, close: () => closeWithin(wait, () => db.destroy()) }
}

const postgres: Engine = {
  name: 'postgres',
  rowLocks: true,
  countingKey: 'bigint generated always as identity primary key',
  lockMigrations: async (transaction) => {
    // An arbitrary constant: "copp" in ASCII.
    await sql`select pg_advisory_xact_lock(1668247664)`.execute(transaction)
  },
  lockQueues: async (transaction, queues) => {
    // 256 locks shared by all queues, since the server's lock table is small (6,400 by default), always taken in the
    // same order to avoid deadlocks. The constant is "line".
    await sql`
      select pg_advisory_xact_lock(1818848869, bucket) from (
        select distinct hashtext(line) & 255 as bucket from unnest(${queues}::text[]) as line order by bucket
      ) as buckets`.execute(transaction)
  },
  isMissingTable: (error) => sqlState(error) === '42P01',
  isUniqueViolation: (error) => sqlState(error) === '23505',
}

const sqlState = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : undefined)

const makePool = (pg: typeof Pg, url: string, wait: number): Pg.Pool => {
  // Times are bigint and fit a double until the year 287396. For this pool only, not every user of `pg`.
  const types: Pg.CustomTypesConfig = {
    getTypeParser: (oid, format) => (oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format)),
  }
  try {
    return new pg.Pool({
      connectionString: url,
      application_name: 'coppice',
      max: 10,
      connectionTimeoutMillis: wait,
      lock_timeout: wait,
      types,
    })
  } catch (error) {
    throw connectionError(url, error)
  }
}

const closeWithin = async (wait: number, close: () => Promise<void>): Promise<void> => {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const alarm = setTimeout(() => {
    reject(new AppError('store-failed', `a database connection wasn't released within ${wait / 1000} s`))
  }, wait)
  try {
    await Promise.race([close(), late])
  } finally {
    clearTimeout(alarm)
  }
}

/** Omits the URL and the original error: both may contain the password (`new URL` quotes its input). */
export const connectionError = (url: string, error: unknown): AppError => {
  const text = error instanceof Error && error.message !== '' ? error.message : codeOf(error)
  const message = `can't use the PostgreSQL database: ${withoutPassword(text, url)}`
  return new AppError('store-failed', message, { remedy: 'check the database URL and that the server is running' })
}

/** An AggregateError (localhost as ::1 and 127.0.0.1, both refused) has a code but no message. */
const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : "it can't be reached"

const withoutPassword = (text: string, url: string): string => {
  const inAuthority = /^[^:]*:\/\/[^:/]*:(.*)@/s.exec(url)?.[1] ?? ''
  const inQuery = /[?&]password=([^&]*)/.exec(url)?.[1] ?? ''
  return [url, inAuthority, decoded(inAuthority), inQuery, decoded(inQuery)]
    .filter((secret) => secret !== '')
    .reduce((clean, secret) => clean.replaceAll(secret, '***'), text)
}

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

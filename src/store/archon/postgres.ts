import type * as Pg from 'pg'
import type { ArchonDatabase, ArchonRow } from './database.ts'
import { connectionError } from '../postgres.ts'

const wait = 30_000

/** One connection, one read-only transaction. */
export const openArchonPostgres = async (url: string): Promise<ArchonDatabase> => {
  const pg = await import('pg')
  const client = await connect(pg, url)
  const query = async (sql: string, values: unknown[] = []): Promise<Record<string, unknown>[]> => {
    try {
      return (await client.query<Record<string, unknown>>(sql, values)).rows
    } catch (error) {
      throw connectionError(url, error)
    }
  }
  const close = (): Promise<void> => client.end().catch(() => {})
  try {
    // Set on the session, not in the URL: a connection pooler would refuse it there.
    await query(`set default_transaction_read_only = on; set statement_timeout = ${2 * wait}`)
    await query("set timezone = 'UTC'; set datestyle = 'ISO'")
    await query('begin isolation level repeatable read read only')
  } catch (error) {
    await close()
    throw error
  }
  return {
    // Not information_schema: a table in two schemas of the search path would list both tables' columns.
    columns: async (table) =>
      (
        await query(
          'select attname from pg_attribute where attrelid = to_regclass($1) and attnum > 0 and not attisdropped',
          [table],
        )
      ).map((row) => String(row['attname'])),
    // Names come from our own list, never from the database.
    rows: async (table, columns) =>
      (await query(`select ${columns.map((name) => `"${name}"`).join(', ')} from "${table}"`)).map(textRow),
    close,
  }
}

const connect = async (pg: typeof Pg, url: string): Promise<Pg.Client> => {
  try {
    const client = new pg.Client({
      connectionString: url,
      application_name: 'coppice import',
      connectionTimeoutMillis: wait,
      // Raw text: dates must not pass through this machine's time zone.
      types: { getTypeParser: () => String } satisfies Pg.CustomTypesConfig,
    })
    // The next query reports a lost server; without a listener, the event would end the process.
    client.on('error', () => {})
    await client.connect()
    return client
  } catch (error) {
    throw connectionError(url, error)
  }
}

const textRow = (row: Record<string, unknown>): ArchonRow =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name, typeof value === 'string' ? value : undefined]))

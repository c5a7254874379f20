import type * as Pg from 'pg'
import type { ArchonDatabase, ArchonRow } from './database.ts'
import { cannotUse } from '../postgres.ts'

const wait = 30_000

/** One connection, one transaction that cannot write. */
export const openArchonPostgres = async (url: string): Promise<ArchonDatabase> => {
  const pg = await import('pg')
  const client = await connected(pg, url)
  const asked = async (sql: string, values: unknown[] = []): Promise<Record<string, unknown>[]> => {
    try {
      return (await client.query<Record<string, unknown>>(sql, values)).rows
    } catch (error) {
      throw cannotUse(url, error)
    }
  }
  const close = (): Promise<void> => client.end().catch(() => {})
  try {
    // Said to the session and not in the URL: a connection pooler passes the one on and refuses the other.
    await asked(`set default_transaction_read_only = on; set statement_timeout = ${2 * wait}`)
    await asked("set timezone = 'UTC'; set datestyle = 'ISO'")
    await asked('begin isolation level repeatable read read only')
  } catch (error) {
    await close()
    throw error
  }
  return {
    // Not information_schema: the same table in two schemas of the search path would give the columns of both.
    columns: async (table) =>
      (
        await asked(
          'select attname from pg_attribute where attrelid = to_regclass($1) and attnum > 0 and not attisdropped',
          [table],
        )
      ).map((row) => String(row['attname'])),
    // Names come from our own list, never from the database.
    rows: async (table, columns) =>
      (await asked(`select ${columns.map((name) => `"${name}"`).join(', ')} from "${table}"`)).map(textRow),
    close,
  }
}

const connected = async (pg: typeof Pg, url: string): Promise<Pg.Client> => {
  try {
    const client = new pg.Client({
      connectionString: url,
      application_name: 'coppice import',
      connectionTimeoutMillis: wait,
      // Everything as the server writes it: a date must not pass through this machine's time zone.
      types: { getTypeParser: () => String } satisfies Pg.CustomTypesConfig,
    })
    // A server that goes away says so to whoever asks next; unheard, the event would end the process.
    client.on('error', () => {})
    await client.connect()
    return client
  } catch (error) {
    throw cannotUse(url, error)
  }
}

const textRow = (row: Record<string, unknown>): ArchonRow =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name, typeof value === 'string' ? value : undefined]))

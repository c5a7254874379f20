import { AppError, isAppError } from '../domain/errors.ts'
import { buildStore } from './build.ts'
import type { Database } from './engine.ts'
import { migrate } from './migrate.ts'
import type { PostgresTimeouts } from './postgres.ts'
import type { SqliteTimeouts } from './sqlite/driver.ts'
import { openSqlite } from './sqlite/open.ts'
import type { Store } from './store.ts'

export type StoreTarget = { readonly sqliteFile: string } | { readonly postgresUrl: string }
export type StoreTimeouts = Partial<SqliteTimeouts & PostgresTimeouts>

/** Opens the database, migrates it and builds the store. */
export const openStore = async (target: StoreTarget, timeouts: StoreTimeouts = {}): Promise<Store> => {
  const database = await openDatabase(target, timeouts)
  return buildStore(database.db, database.engine, database)
}

/** The store without its interface, for the conformance suite, which counts connections. */
export const openDatabase = async (target: StoreTarget, timeouts: StoreTimeouts = {}): Promise<Database> => {
  const database = await connect(target, timeouts)
  try {
    await migrate(database.db, database.engine)
  } catch (error) {
    await database.close().catch(() => {})
    if (isAppError(error)) throw error
    const text = error instanceof Error ? error.message : String(error)
    throw new AppError('store-failed', `couldn't migrate the database: ${text}`, {
      cause: error,
    })
  }
  return database
}

const connect = async (target: StoreTarget, timeouts: StoreTimeouts): Promise<Database> => {
  if ('sqliteFile' in target) return openSqlite(target.sqliteFile, timeouts)
  const { openPostgres } = await import('./postgres.ts')
  return openPostgres(target.postgresUrl, timeouts)
}

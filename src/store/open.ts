import { AppError, isAppError } from '../domain/errors.ts'
import { buildStore } from './build.ts'
import type { Database } from './engine.ts'
import { migrate } from './migrate.ts'
import type { PostgresPatience } from './postgres.ts'
import type { SqlitePatience } from './sqlite/driver.ts'
import { openSqlite } from './sqlite/open.ts'
import type { Store } from './store.ts'

export type StoreTarget = { readonly sqliteFile: string } | { readonly postgresUrl: string }
export type StorePatience = Partial<SqlitePatience & PostgresPatience>

/** Opens the database, brings its tables up to date and builds the store over it. */
export const openStore = async (target: StoreTarget, patience: StorePatience = {}): Promise<Store> => {
  const database = await openDatabase(target, patience)
  return buildStore(database.db, database.engine, database)
}

/** The store without its interface, for those who must look underneath: the conformance suite counts connections. */
export const openDatabase = async (target: StoreTarget, patience: StorePatience = {}): Promise<Database> => {
  const database = await connect(target, patience)
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

const connect = async (target: StoreTarget, patience: StorePatience): Promise<Database> => {
  if ('sqliteFile' in target) return openSqlite(target.sqliteFile, patience)
  const { openPostgres } = await import('./postgres.ts')
  return openPostgres(target.postgresUrl, patience)
}

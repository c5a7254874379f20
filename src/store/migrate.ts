import { type Kysely, sql, type Transaction } from 'kysely'
import { AppError } from '../domain/errors.ts'
import type { Engine } from './engine.ts'
import type { Migration } from './migrations/all.ts'
import type { Tables } from './tables.ts'

/** The last one's number: hardly any start needs the migrations themselves. */
export const newestMigration = 22

/** One cheap read if nothing is pending; otherwise each migration in its own transaction, under a lock. */
export const migrate = async (db: Kysely<Tables>, engine: Engine): Promise<void> => {
  const current = await currentMigration(db).catch((error: unknown) => {
    if (engine.isMissingTable(error)) return 0
    throw error
  })
  refuseNewer(current)
  if (current === newestMigration) return
  const { migrations } = await import('./migrations/all.ts')
  for (const migration of migrations) {
    await db.transaction().execute((transaction) => apply(transaction, engine, migration))
  }
}

const apply = async (transaction: Transaction<Tables>, engine: Engine, migration: Migration): Promise<void> => {
  await engine.lockMigrations(transaction)
  await sql`create table if not exists migrations (number integer primary key, name text not null)`.execute(transaction)
  // Another process, even a newer version, may have migrated while we waited for the lock.
  const current = await currentMigration(transaction)
  refuseNewer(current)
  if (current >= migration.number) return
  await migration.up(transaction, engine)
  await transaction.insertInto('migrations').values({ number: migration.number, name: migration.name }).execute()
}

const currentMigration = async (db: Kysely<Tables>): Promise<number> => {
  const row = await db
    .selectFrom('migrations')
    .select((eb) => eb.fn.max('number').as('reached'))
    .executeTakeFirst()
  // `max` of no rows is null in both engines, despite the type.
  return (row?.reached as number | null | undefined) ?? 0
}

const refuseNewer = (current: number): void => {
  if (current <= newestMigration) return
  throw new AppError(
    'store-failed',
    `the database was written by a newer version of coppice: it is at migration ${current}, but this version only knows ${newestMigration}`,
    { remedy: 'use the newer version; nothing was changed' },
  )
}

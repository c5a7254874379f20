import { type Kysely, sql, type Transaction } from 'kysely'
import { AppError } from '../domain/errors.ts'
import type { Engine } from './engine.ts'
import * as ground from './migrations/0001-ground.ts'
import * as conversations from './migrations/0002-conversations.ts'
import * as usage from './migrations/0003-usage.ts'
import * as mergeAnswers from './migrations/0004-merge-answers.ts'
import * as repositoryInode from './migrations/0005-repository-inode.ts'
import * as pageSessions from './migrations/0006-page-sessions.ts'
import * as runWatches from './migrations/0007-run-watches.ts'
import * as trust from './migrations/0008-trust.ts'
import * as formerCodebase from './migrations/0009-former-codebase.ts'
import * as watchedTime from './migrations/0010-watched-time.ts'
import * as vouchedCommit from './migrations/0011-vouched-commit.ts'
import * as vouchedLog from './migrations/0012-vouched-log.ts'
import * as mergedPullRequests from './migrations/0013-merged-pull-requests.ts'
import * as sharing from './migrations/0014-sharing.ts'
import * as imported from './migrations/0015-imported.ts'
import * as platformMemory from './migrations/0016-platform-memory.ts'
import * as readConfig from './migrations/0017-read-config.ts'
import type { Tables } from './tables.ts'

export type Migration = {
  readonly number: number
  readonly name: string
  readonly up: (transaction: Transaction<Tables>, engine: Engine) => Promise<void>
}

/** In order, numbered without gaps; a released one is never edited. */
const migrations: readonly Migration[] = [
  { number: 1, name: 'ground', up: ground.up },
  { number: 2, name: 'conversations', up: conversations.up },
  { number: 3, name: 'usage', up: usage.up },
  { number: 4, name: 'merge-answers', up: mergeAnswers.up },
  { number: 5, name: 'repository-inode', up: repositoryInode.up },
  { number: 6, name: 'page-sessions', up: pageSessions.up },
  { number: 7, name: 'run-watches', up: runWatches.up },
  { number: 8, name: 'trust', up: trust.up },
  { number: 9, name: 'former-codebase', up: formerCodebase.up },
  { number: 10, name: 'watched-time', up: watchedTime.up },
  { number: 11, name: 'vouched-commit', up: vouchedCommit.up },
  { number: 12, name: 'vouched-log', up: vouchedLog.up },
  { number: 13, name: 'merged-pull-requests', up: mergedPullRequests.up },
  { number: 14, name: 'sharing', up: sharing.up },
  { number: 15, name: 'imported', up: imported.up },
  { number: 16, name: 'platform-memory', up: platformMemory.up },
  { number: 17, name: 'read-config', up: readConfig.up },
]

/** One cheap read if nothing is pending; otherwise each migration in its own transaction, under a lock. */
export const migrate = async (
  db: Kysely<Tables>,
  engine: Engine,
  known: readonly Migration[] = migrations,
): Promise<void> => {
  const newest = known.at(-1)?.number ?? 0
  const current = await currentMigration(db).catch((error: unknown) => {
    if (engine.isMissingTable(error)) return 0
    throw error
  })
  refuseNewer(current, newest)
  if (current === newest) return
  for (const migration of known) {
    await db.transaction().execute((transaction) => apply(transaction, engine, migration, newest))
  }
}

const apply = async (
  transaction: Transaction<Tables>,
  engine: Engine,
  migration: Migration,
  newest: number,
): Promise<void> => {
  await engine.lockMigrations(transaction)
  await sql`create table if not exists migrations (number integer primary key, name text not null)`.execute(transaction)
  // Another process, even a newer version, may have migrated while we waited for the lock.
  const current = await currentMigration(transaction)
  refuseNewer(current, newest)
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

const refuseNewer = (current: number, newest: number): void => {
  if (current <= newest) return
  throw new AppError(
    'store-failed',
    `the database was written by a newer version of coppice: it is at migration ${current}, but this version only knows ${newest}`,
    { remedy: 'use the newer version; nothing was changed' },
  )
}

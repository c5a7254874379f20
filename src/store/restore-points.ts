import { type Kysely, sql } from 'kysely'
import type { IsolatedEnvironment } from '../domain/environment.ts'
import { type Sha, toCodebaseId, toEnvironmentId } from '../domain/names.ts'
import type { RestoreContents, RestorePoint } from '../domain/removal/restore-point.ts'
import type { Trust } from '../domain/trust.ts'
import { fromJson, toJson } from './rows.ts'
import type { RestorePointStore } from './store.ts'
import type { RestorePointRow, Tables } from './tables.ts'
import { watchedTime, watchTime } from './watched-time.ts'

export const restorePointStore = (db: Kysely<Tables>): RestorePointStore => {
  const all = () => db.selectFrom('restore_points').selectAll()
  return {
    insert: async (point) => {
      await db
        .insertInto('restore_points')
        .values(toRow(point, await watchedTime(db, point.host)))
        .execute()
    },
    get: async (id) => {
      const row = await all().where('id', '=', id).executeTakeFirst()
      return row === undefined ? undefined : fromRow(row)
    },
    list: async (codebaseId) => {
      const newestFirst = all().orderBy('created_at', 'desc').orderBy('id', 'desc')
      return (await newestFirst.where('codebase_id', '=', codebaseId).execute()).map(fromRow)
    },
    watch: (host, now) => watchTime(db, host, now),
    expired: async (host, now) => {
      await watchTime(db, host, now)
      const total = await watchedTime(db, host)
      const rows = await all()
        .where('host', '=', host)
        .where('expires_at', '<=', now)
        .where((eb) => eb(eb.val(total), '>=', sql<number>`watched_from + expires_at - created_at`))
        .orderBy('expires_at')
        .execute()
      return rows.map(fromRow)
    },
    remove: async (id) => {
      await db.deleteFrom('restore_points').where('id', '=', id).execute()
    },
  }
}

const toRow = (point: RestorePoint, watchedFrom: number): RestorePointRow => ({
  id: point.id,
  host: point.host,
  codebase_id: point.codebaseId,
  environment_id: point.environmentId,
  created_at: point.createdAt,
  expires_at: point.expiresAt,
  ref: point.ref,
  commit_sha: point.commit,
  contents: toJson(point.contents),
  watched_from: watchedFrom,
})

const fromRow = (row: RestorePointRow): RestorePoint => ({
  id: row.id,
  host: row.host,
  codebaseId: toCodebaseId(row.codebase_id),
  environmentId: toEnvironmentId(row.environment_id),
  createdAt: row.created_at,
  expiresAt: row.expires_at,
  ref: row.ref,
  commit: row.commit_sha as Sha,
  contents: withTrust(fromJson(row.contents) as StoredContents),
})

/** Earlier versions stored `isFork`, which was also false if unchecked: that proves nothing. */
type StoredContents = Omit<RestoreContents, 'environment'> & {
  readonly environment: Omit<IsolatedEnvironment, 'trust'> & { readonly trust?: Trust; readonly isFork?: boolean }
}

const withTrust = ({
  environment: { isFork, trust, ...environment },
  ...contents
}: StoredContents): RestoreContents => {
  const wasOwn = isFork === false && environment.owned && !/^pr-.*-review$/.test(environment.branch)
  return { ...contents, environment: { ...environment, trust: trust ?? (wasOwn ? 'own' : 'unproven') } }
}

import type { Kysely } from 'kysely'
import type { CodebaseId, EnvironmentId } from '../domain/names.ts'
import { fromJson, orNull, toJson } from './rows.ts'
import type { Tables } from './tables.ts'

/** A snapshot of git's own files in a codebase or one of its environments. */
export type GitSnapshot = {
  readonly host: string
  /** Opaque here. */
  readonly scope: string
  readonly codebaseId: CodebaseId
  readonly environmentId: EnvironmentId | undefined
  /** Plain JSON. */
  readonly snapshot: unknown
  readonly at: number
}

export type GitSnapshotStore = {
  get(host: string, scope: string): Promise<unknown>
  /** Replaces the previous one. Those of an environment go with it (`environments/environments.ts`). */
  put(snapshot: GitSnapshot): Promise<void>
}

export const gitSnapshotStore = (db: Kysely<Tables>): GitSnapshotStore => ({
  get: async (host, scope) => {
    const row = await db
      .selectFrom('git_looks')
      .select('look')
      .where('host', '=', host)
      .where('scope', '=', scope)
      .executeTakeFirst()
    return row === undefined ? undefined : fromJson(row.look)
  },
  put: async ({ host, scope, codebaseId, environmentId, snapshot, at }) => {
    const values = { look: toJson(snapshot), at }
    await db
      .insertInto('git_looks')
      .values({ host, scope, codebase_id: codebaseId, environment_id: orNull(environmentId), ...values })
      .onConflict((conflict) => conflict.columns(['host', 'scope']).doUpdateSet(values))
      .execute()
  },
})

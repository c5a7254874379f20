import type { Kysely } from 'kysely'
import type { CodebaseId, EnvironmentId } from '../domain/names.ts'
import { fromJson, orNull, toJson } from './rows.ts'
import type { Tables } from './tables.ts'

/** What git's own files of a codebase, or of one of its environments, looked like. */
export type GitLookRow = {
  readonly host: string
  /** Of what: opaque here. */
  readonly scope: string
  readonly codebaseId: CodebaseId
  readonly environmentId: EnvironmentId | undefined
  /** Plain JSON. */
  readonly look: unknown
  readonly at: number
}

export type GitLookStore = {
  get(host: string, scope: string): Promise<unknown>
  /** In place of the former one. Those of environments that are gone go with it. */
  put(look: GitLookRow): Promise<void>
}

export const gitLookStore = (db: Kysely<Tables>): GitLookStore => ({
  get: async (host, scope) => {
    const row = await db
      .selectFrom('git_looks')
      .select('look')
      .where('host', '=', host)
      .where('scope', '=', scope)
      .executeTakeFirst()
    return row === undefined ? undefined : fromJson(row.look)
  },
  put: async ({ host, scope, codebaseId, environmentId, look, at }) => {
    const values = { look: toJson(look), at }
    await db
      .insertInto('git_looks')
      .values({ host, scope, codebase_id: codebaseId, environment_id: orNull(environmentId), ...values })
      .onConflict((conflict) => conflict.columns(['host', 'scope']).doUpdateSet(values))
      .execute()
    const live = db.selectFrom('environments').select('id').where('status', 'not in', ['removed', 'released'])
    await db
      .deleteFrom('git_looks')
      .where('codebase_id', '=', codebaseId)
      .where('environment_id', 'is not', null)
      .where('environment_id', 'not in', live)
      .execute()
  },
})

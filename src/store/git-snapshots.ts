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
  /** Whether this is what is stored, key by key in the same order. */
  isStored(host: string, scope: string, snapshot: unknown): Promise<boolean>
  /** Replaces the previous one. Those of an environment go with it (`environments/environments.ts`). */
  put(snapshot: GitSnapshot): Promise<void>
}

export const gitSnapshotStore = (db: Kysely<Tables>): GitSnapshotStore => {
  const textOf = async (host: string, scope: string): Promise<string | undefined> => {
    const rows = db.selectFrom('git_looks').select('look').where('host', '=', host).where('scope', '=', scope)
    return (await rows.executeTakeFirst())?.look
  }
  return {
    get: async (host, scope) => {
      const text = await textOf(host, scope)
      return text === undefined ? undefined : fromJson(text)
    },
    isStored: async (host, scope, snapshot) => (await textOf(host, scope)) === toJson(snapshot),
    put: async ({ host, scope, codebaseId, environmentId, snapshot, at }) => {
      const values = { look: toJson(snapshot), at }
      await db
        .insertInto('git_looks')
        .values({ host, scope, codebase_id: codebaseId, environment_id: orNull(environmentId), ...values })
        .onConflict((conflict) => conflict.columns(['host', 'scope']).doUpdateSet(values))
        .execute()
    },
  }
}

import type { Kysely } from 'kysely'
import type { Codebase } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import { settledStates } from '../domain/fleet/item.ts'
import { toCodebaseId } from '../domain/names.ts'
import { coppice, remedy } from '../domain/remedy.ts'
import { type Engine, inTransaction } from './engine.ts'
import { isLive } from './environments/rows.ts'
import { fromFlag, orNull, orUndefined, patchedColumns, toFlag } from './rows.ts'
import type { CodebasePatch, CodebaseStore } from './store.ts'
import type { CodebaseRow, Tables } from './tables.ts'

export const codebaseStore = (db: Kysely<Tables>, engine: Engine): CodebaseStore => {
  const all = () => db.selectFrom('codebases').selectAll()
  return {
    insert: async (codebase) => {
      const result = await db
        .insertInto('codebases')
        .values(toRow(codebase))
        .onConflict((conflict) => conflict.doNothing())
        .executeTakeFirst()
      return result.numInsertedOrUpdatedRows === 1n
    },
    get: async (id) => found(await all().where('id', '=', id).executeTakeFirst()),
    byName: async (host, name) =>
      found(await all().where('host', '=', host).where('name', '=', name).executeTakeFirst()),
    byRepoPath: async (host, repoPath) =>
      found(await all().where('host', '=', host).where('repo_path', '=', repoPath).executeTakeFirst()),
    list: async (host) => (await all().where('host', '=', host).orderBy('name').execute()).map(fromRow),
    update: async (id, patch) => {
      const set = patchedColumns<CodebasePatch, CodebaseRow>(patch, patchColumns)
      if (Object.keys(set).length > 0) await db.updateTable('codebases').set(set).where('id', '=', id).execute()
    },
    remove: (id) =>
      inTransaction(db, async (transaction) => {
        await lockCodebase(transaction, engine, id)
        await refuseInUse(transaction, id)
        await refuseFleet(transaction, id)
        await recordFormerCodebase(transaction, id)
        await transaction.deleteFrom('codebases').where('id', '=', id).execute()
      }),
  }
}

/** Serializes decisions about a codebase's environments. False if the codebase doesn't exist. */
export const lockCodebase = async (db: Kysely<Tables>, engine: Engine, id: string): Promise<boolean> => {
  const query = db.selectFrom('codebases').select('id').where('id', '=', id)
  // Not `for update`: that would block every insert with a foreign key to this codebase.
  const row = await (engine.rowLocks ? query.forNoKeyUpdate() : query).executeTakeFirst()
  return row !== undefined
}

/** Dead environments are deleted by cascade; live ones and spares have directories that we would lose track of. */
const refuseInUse = async (db: Kysely<Tables>, id: string): Promise<void> => {
  const environment = await db
    .selectFrom('environments')
    .select('branch')
    .where('codebase_id', '=', id)
    .where(isLive())
    .executeTakeFirst()
  if (environment !== undefined) {
    throw new AppError('codebase-in-use', `the repository still has worktrees, such as ${environment.branch}`, {
      remedy: 'remove its worktrees first',
    })
  }
  const spare = await db.selectFrom('spares').select('path').where('codebase_id', '=', id).executeTakeFirst()
  if (spare !== undefined) {
    throw new AppError('codebase-in-use', `the repository still has a spare worktree at ${spare.path}`, {
      remedy: 'remove its spare worktrees first',
    })
  }
}

/** Throws while it has live agents or unsettled items. The others are deleted with it. */
const refuseFleet = async (db: Kysely<Tables>, id: string): Promise<void> => {
  const agent = await db
    .selectFrom('agents')
    .select(['name', 'kind'])
    .where('codebase_id', '=', id)
    .where('state', '<>', 'gone')
    .executeTakeFirst()
  if (agent !== undefined) {
    throw new AppError('codebase-in-use', `the fleet's agent ${agent.name} works in the repository`, {
      remedy: remedy`remove it first: ${coppice(agent.kind === 'crew' ? `crew remove ${agent.name}` : `fleet down ${agent.name} --clean`)}`,
    })
  }
  const item = await db
    .selectFrom('items')
    .select('id')
    .where('codebase_id', '=', id)
    .where('state', 'not in', settledStates)
    .executeTakeFirst()
  if (item === undefined) return
  throw new AppError('codebase-in-use', `the repository still has items, such as ${item.id}`, {
    remedy: remedy`finish or close them first: ${coppice('item list')} shows them`,
  })
}

/**
 * The foreign key clears the reference; such conversations must differ from those that never had a codebase.
 */
const recordFormerCodebase = async (db: Kysely<Tables>, id: string): Promise<void> => {
  await db
    .updateTable('conversations')
    .set((eb) => ({
      former_codebase_id: id,
      former_codebase_name: eb.selectFrom('codebases').select('name').where('id', '=', id),
    }))
    .where('codebase_id', '=', id)
    .execute()
}

const patchColumns = {
  remote: 'remote',
  remoteUrl: 'remote_url',
  baseBranch: 'base_branch',
  base: 'base',
  github: 'github',
  defaultAgent: 'default_agent',
  trustedConfig: 'trusted_config',
  trustedChecks: 'trusted_checks',
  configCommit: 'config_commit',
  configText: 'config_text',
  fetchedAt: 'fetched_at',
  repoPath: 'repo_path',
  checkoutPath: 'checkout_path',
  repoInode: 'repo_inode',
} as const satisfies Record<keyof CodebasePatch, keyof CodebaseRow>

const found = (row: CodebaseRow | undefined): Codebase | undefined => (row === undefined ? undefined : fromRow(row))

const toRow = (codebase: Codebase): CodebaseRow => ({
  id: codebase.id,
  host: codebase.host,
  name: codebase.name,
  repo_path: codebase.repoPath,
  checkout_path: orNull(codebase.checkoutPath),
  repo_inode: orNull(codebase.repoInode),
  remote: orNull(codebase.remote),
  remote_url: orNull(codebase.remoteUrl),
  base_branch: orNull(codebase.baseBranch),
  github: orNull(codebase.github),
  default_agent: orNull(codebase.defaultAgent),
  cloned: toFlag(codebase.cloned),
  trusted_config: orNull(codebase.trustedConfig),
  trusted_checks: orNull(codebase.trustedChecks),
  config_commit: orNull(codebase.configCommit),
  config_text: orNull(codebase.configText),
  fetched_at: orNull(codebase.fetchedAt),
  base: orNull(codebase.base),
  created_at: codebase.createdAt,
})

const fromRow = (row: CodebaseRow): Codebase => ({
  id: toCodebaseId(row.id),
  host: row.host,
  name: row.name,
  repoPath: row.repo_path,
  checkoutPath: orUndefined(row.checkout_path),
  repoInode: orUndefined(row.repo_inode),
  remote: orUndefined(row.remote),
  remoteUrl: orUndefined(row.remote_url),
  baseBranch: orUndefined(row.base_branch),
  github: orUndefined(row.github),
  defaultAgent: orUndefined(row.default_agent),
  cloned: fromFlag(row.cloned),
  trustedConfig: orUndefined(row.trusted_config),
  ...(row.trusted_checks !== null && { trustedChecks: row.trusted_checks }),
  configCommit: orUndefined(row.config_commit),
  configText: orUndefined(row.config_text),
  fetchedAt: orUndefined(row.fetched_at),
  base: orUndefined(row.base),
  createdAt: row.created_at,
})

import type { ExpressionBuilder, Kysely } from 'kysely'
import { type CodebaseId, type EnvironmentId, toCodebaseId } from '../domain/names.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { fromFlag, fromJson, toFlag, toJson } from './rows.ts'
import type { ConversationKey } from '../domain/message.ts'
import type { RunWatchRow, Tables } from './tables.ts'

/**
 * One run of an agent and how to find what it leaves behind. Written before its process exists, deleted once nothing of
 * the run is alive and changes were reported, so a crash loses neither.
 */
export type RunWatch = ConversationKey & {
  readonly id: string
  readonly host: string
  readonly codebaseId: CodebaseId
  /** The process that runs the agent. */
  readonly owner: ProcessIdentity
  /** The agent has exited; any process still alive is a leftover. */
  readonly ended: boolean
  readonly data: RunWatchData
}

export type RunWatchData = {
  readonly messageId: string
  readonly environmentId: EnvironmentId | undefined
  readonly directory: string
  readonly mark: { readonly id: string; readonly cgroup: string | undefined }
  /** The shared checkout at the last check: see `tripwire.ts`. */
  readonly checkout: { readonly since: number; readonly head: string }
  /** Processes in the directory that may be the run's or a person's. */
  readonly unknown: readonly (ProcessIdentity & { readonly command: string })[]
  /** The leftovers have been listed in a reply. */
  readonly named: boolean
  /** The conversation was notified of changes since the run ended; the rest waits for its next message. */
  readonly reported: boolean
}

export type RunWatchStore = {
  insert(watch: RunWatch): Promise<void>
  update(id: string, change: Pick<RunWatch, 'ended' | 'data'>): Promise<void>
  remove(id: string): Promise<void>
  ofHost(host: string): Promise<RunWatch[]>
  /** Those of the host that have ended or that another process than this one runs. */
  endedOrOthers(host: string, self: ProcessIdentity): Promise<RunWatch[]>
}

export const runWatchStore = (db: Kysely<Tables>): RunWatchStore => {
  const ofHost = (host: string) => db.selectFrom('run_watches').selectAll().where('host', '=', host).orderBy('id')
  return {
    insert: async ({ ended, data, owner, ...watch }) => {
      const row: RunWatchRow = {
        id: watch.id,
        host: watch.host,
        codebase_id: watch.codebaseId,
        platform: watch.platform,
        conversation_id: watch.conversationId,
        owner_pid: owner.pid,
        owner_start_time: owner.startTime,
        ended: toFlag(ended),
        data: toJson(data),
      }
      await db.insertInto('run_watches').values(row).execute()
    },
    update: async (id, { ended, data }) => {
      await db
        .updateTable('run_watches')
        .set({ ended: toFlag(ended), data: toJson(data) })
        .where('id', '=', id)
        .execute()
    },
    remove: async (id) => {
      await db.deleteFrom('run_watches').where('id', '=', id).execute()
    },
    ofHost: async (host) => (await ofHost(host).execute()).map(fromRow),
    endedOrOthers: async (host, { pid, startTime }) => {
      const isOthers = (eb: ExpressionBuilder<Tables, 'run_watches'>) =>
        eb.or([eb('ended', '=', 1), eb('owner_pid', '!=', pid), eb('owner_start_time', '!=', startTime)])
      return (await ofHost(host).where(isOthers).execute()).map(fromRow)
    },
  }
}

const fromRow = (row: RunWatchRow): RunWatch => ({
  id: row.id,
  host: row.host,
  codebaseId: toCodebaseId(row.codebase_id),
  platform: row.platform,
  conversationId: row.conversation_id,
  owner: { pid: row.owner_pid, startTime: row.owner_start_time },
  ended: fromFlag(row.ended),
  data: fromJson(row.data) as RunWatchData,
})

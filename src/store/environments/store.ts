import type { EnvironmentStatus, IsolatedEnvironment } from '../../domain/environment.ts'
import type { CodebaseId, EnvironmentId } from '../../domain/names.ts'
import type { Work } from '../../domain/work.ts'

export type InsertOutcome =
  | { readonly outcome: 'inserted' }
  /** Another live environment has the same work, branch or path. */
  | { readonly outcome: 'conflict'; readonly on: 'work' | 'branch' | 'path' }
  /** `active` counts the codebase's creating, active and removing ones. */
  | { readonly outcome: 'limit'; readonly active: number }

export type MovedWork =
  /** `from`: where it was found before. */
  | { readonly outcome: 'moved'; readonly from: IsolatedEnvironment | undefined }
  | { readonly outcome: 'already-there' }
  /** The environment isn't live, or isn't the codebase's. */
  | { readonly outcome: 'gone' }

/** Status has its own transitions, and `persistent` comes with a conversation; the other omitted fields never change. */
export type EnvironmentPatch = Partial<
  Omit<
    IsolatedEnvironment,
    'id' | 'host' | 'codebaseId' | 'work' | 'provider' | 'status' | 'createdBy' | 'createdAt' | 'persistent'
  >
>

export type EnvironmentStore = {
  /** Count and insert are one transaction, so the limit holds across processes. `undefined`: no limit. */
  insert(environment: IsolatedEnvironment, limit: number | undefined): Promise<InsertOutcome>
  get(id: EnvironmentId): Promise<IsolatedEnvironment | undefined>
  /** Those of these that are recorded, in any status. */
  some(ids: readonly EnvironmentId[]): Promise<IsolatedEnvironment[]>
  /** The live environment of a work, directly or by an alias. One statement. */
  liveByWork(codebaseId: CodebaseId, work: Work): Promise<IsolatedEnvironment | undefined>
  liveByBranch(codebaseId: CodebaseId, branch: string): Promise<IsolatedEnvironment | undefined>
  liveByPath(host: string, path: string): Promise<IsolatedEnvironment | undefined>
  live(codebaseId: CodebaseId): Promise<IsolatedEnvironment[]>
  /** Those not proven to be our own, including vouched, removed and released ones. */
  notOwn(codebaseId: CodebaseId): Promise<IsolatedEnvironment[]>
  /** The newest removed one on this branch. */
  lastRemoved(codebaseId: CodebaseId, branch: string): Promise<IsolatedEnvironment | undefined>
  update(id: EnvironmentId, patch: EnvironmentPatch): Promise<void>
  /** Checked against the transition table; false if the row is no longer `from` (someone else was faster). */
  transition(
    id: EnvironmentId,
    from: EnvironmentStatus,
    to: EnvironmentStatus,
    patch?: EnvironmentPatch,
  ): Promise<boolean>
  /** Deletes the row of an undone creation; only if it is `creating`. */
  deleteCreating(id: EnvironmentId): Promise<void>
  addAlias(id: EnvironmentId, codebaseId: CodebaseId, work: Work, at: number): Promise<boolean>
  /**
   * The work is found in this environment from now on. The environment it was found in before keeps everything else; if
   * it was that one's own work, it becomes the task named after its branch. One transaction.
   */
  moveWork(id: EnvironmentId, codebaseId: CodebaseId, work: Work, at: number): Promise<MovedWork>
  aliases(id: EnvironmentId): Promise<Work[]>
  aliasesOf(ids: readonly EnvironmentId[]): Promise<Map<EnvironmentId, Work[]>>
  /** Aliases go with their environment, so the work can be resumed elsewhere. */
  dropAliases(id: EnvironmentId): Promise<void>
}

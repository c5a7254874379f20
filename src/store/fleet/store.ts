import type { FleetAgent, FleetAgentState } from '../../domain/fleet/agent.ts'
import type { FormulaRun } from '../../domain/fleet/formula.ts'
import type {
  Item,
  ItemChange,
  ItemField,
  ItemHistoryEntry,
  ItemSource,
  ItemState,
  SourceKind,
} from '../../domain/fleet/item.ts'
import type { Landing, LandingQueue, LandingState } from '../../domain/fleet/landing.ts'
import type { CodebaseId, EnvironmentId } from '../../domain/names.ts'
import type { ProcessIdentity } from '../../domain/process-identity.ts'

export type NewItem = Pick<
  Item,
  'codebaseId' | 'title' | 'body' | 'priority' | 'after' | 'source' | 'createdBy' | 'createdAt'
>

/** Has its id already, because other items of the same import may depend on it. */
export type ImportedItem = NewItem & Pick<Item, 'id' | 'parked'> & { readonly source: ItemSource }

/** Recovered from its worktree after the database was lost. */
export type RecoveredItem = NewItem & Pick<Item, 'id' | 'state' | 'environmentId' | 'pullRequest'>

export type ItemFilter = {
  readonly codebaseId?: CodebaseId
  readonly states?: readonly ItemState[]
}

/** Who made a change, and when. */
export type Signed = { readonly by: string; readonly at: number }

export type ItemMove = Signed & {
  readonly from: ItemState
  readonly to: ItemState
  readonly change: ItemChange
  /** Fields that change with the state. An absent field keeps its value; `undefined` clears it. */
  readonly patch?: Partial<Pick<Item, 'environmentId' | 'parked' | 'pullRequest'>>
}

/** An absent field keeps its value; `undefined` clears it. */
export type ItemPatch = Partial<Pick<Item, 'environmentId' | 'parked' | 'pullRequest'>> & {
  /** The same source, with a new snapshot. */
  readonly source?: ItemSource
}

export type ItemStore = {
  /** Assigns the id. Undefined if the codebase already has an item from this source. */
  insert(item: NewItem): Promise<Item | undefined>
  /** False if its id is taken. */
  recover(item: RecoveredItem): Promise<boolean>
  get(id: number): Promise<Item | undefined>
  some(ids: readonly number[]): Promise<Item[]>
  bySource(codebaseId: CodebaseId, key: string): Promise<Item | undefined>
  /** Items imported from there, by id. */
  fromSource(codebaseId: CodebaseId, kind: SourceKind): Promise<Item[]>
  /** Reserves consecutive ids and returns the first. Call in the transaction that uses them. */
  takeIds(count: number): Promise<number>
  /** Call after `lockDependencies`, and only with sources that the codebase has no items from. */
  insertImported(items: readonly ImportedItem[]): Promise<void>
  /** By id. */
  list(filter: ItemFilter): Promise<Item[]>
  /** Open items whose dependencies are settled: most urgent first, then oldest. */
  ready(filter: { readonly codebaseIds?: readonly CodebaseId[]; readonly limit?: number }): Promise<Item[]>
  ofEnvironments(ids: readonly EnvironmentId[]): Promise<Item[]>
  /** Checks the transition table and adds to the history. False if the item is no longer in `from`. */
  move(id: number, move: ItemMove): Promise<boolean>
  /** Each item's dependencies, locked against changes until the transaction ends. */
  lockDependencies(): Promise<ReadonlyMap<number, readonly number[]>>
  /** `from`: the source in which it was changed. */
  edit(
    id: number,
    patch: Partial<Pick<Item, ItemField>>,
    signed: Signed & { readonly from?: SourceKind },
  ): Promise<void>
  update(id: number, patch: ItemPatch): Promise<void>
  /** Clears the environment of its items, because it is gone. */
  detachEnvironment(id: EnvironmentId): Promise<void>
  note(id: number, change: ItemChange, signed: Signed): Promise<void>
  /** Oldest first. */
  history(id: number): Promise<ItemHistoryEntry[]>
  counts(codebaseId?: CodebaseId): Promise<ItemCounts>
  /** From now on, the conversation is notified of the item's changes. */
  follow(id: number, conversation: string, at: number): Promise<void>
  /** Ids of conversations. */
  followers(id: number): Promise<string[]>
}

export type ItemCounts = Readonly<Record<ItemState | 'ready', number>>

export type FleetAgentPatch = Partial<
  Pick<
    FleetAgent,
    | 'itemId'
    | 'environmentId'
    | 'codebaseId'
    | 'session'
    | 'spawn'
    | 'restarts'
    | 'lastSignAt'
    | 'workedAt'
    | 'drainingSince'
    | 'holder'
    | 'endedAt'
    | 'program'
  >
>

export type FleetAgentStore = {
  /** `name-taken`: by a live agent of the host. `item-taken`: the item is hooked to another agent. */
  insert(agent: FleetAgent): Promise<'inserted' | 'name-taken' | 'item-taken'>
  get(id: string): Promise<FleetAgent | undefined>
  /** Undefined if it is gone. */
  byName(host: string, name: string): Promise<FleetAgent | undefined>
  /** The last agent of this name that is gone. */
  lastGone(host: string, name: string): Promise<FleetAgent | undefined>
  /** Agents that aren't gone, by name. */
  live(filter?: { readonly host?: string; readonly codebaseId?: CodebaseId }): Promise<FleetAgent[]>
  ofItems(ids: readonly number[]): Promise<FleetAgent[]>
  /** Agents that aren't gone. */
  ofEnvironments(ids: readonly EnvironmentId[]): Promise<FleetAgent[]>
  /** Checks the transition table. False if the agent is no longer in `from`. */
  move(id: string, from: FleetAgentState, to: FleetAgentState, patch?: FleetAgentPatch): Promise<boolean>
  update(id: string, patch: FleetAgentPatch): Promise<void>
  /** Replaces the holder `expected`. False if another process has already done so. */
  claim(id: string, expected: ProcessIdentity, holder: ProcessIdentity): Promise<boolean>
  /** Deletes agents that were gone before this time. */
  deleteGone(before: number): Promise<number>
}

export type FormulaRunPatch = Partial<
  Pick<FormulaRun, 'steps' | 'state' | 'sha' | 'pullRequest' | 'holder' | 'waiter' | 'branch'>
>

export type FormulaRunStore = {
  /** False if the agent has a running one. */
  insert(run: FormulaRun): Promise<boolean>
  get(id: string): Promise<FormulaRun | undefined>
  running(): Promise<FormulaRun[]>
  runningOf(agentId: string): Promise<FormulaRun | undefined>
  latestOfItem(itemId: number): Promise<FormulaRun | undefined>
  /** Replaces the holder `expected`. False if another process has already done so. */
  claim(id: string, expected: FormulaRun['holder'], holder: NonNullable<FormulaRun['holder']>): Promise<boolean>
  update(id: string, patch: FormulaRunPatch, at: number): Promise<void>
}

/** An absent field keeps its value; `undefined` clears `todo`. */
export type LandingPatch = Partial<Pick<Landing, 'landedSha' | 'attempts' | 'gate' | 'why' | 'todo'>>

export type NewLanding = Pick<Landing, 'codebaseId' | 'itemId' | 'branch' | 'sha' | 'createdBy' | 'createdAt'> &
  Partial<Pick<Landing, 'baseBranch' | 'mergeCommit'>>

export type LandingStore = {
  /** Queues the branch; an earlier landing of it that is still queued is superseded. */
  enqueue(landing: NewLanding): Promise<Landing>
  get(id: number): Promise<Landing | undefined>
  /** Newest first. */
  list(filter: {
    readonly codebaseId?: CodebaseId
    readonly states?: readonly LandingState[]
    readonly itemId?: number
    readonly limit: number
  }): Promise<Landing[]>
  /** Those to work on, by id: queued, being tested, or with something left to do. */
  pending(codebaseId?: CodebaseId): Promise<Landing[]>
  move(id: number, from: LandingState, to: LandingState, at: number, patch?: LandingPatch): Promise<boolean>
  /** False if its `todo` was another one: somebody else has done it. */
  finish(id: number, todo: NonNullable<Landing['todo']>): Promise<boolean>
  queue(codebaseId: CodebaseId): Promise<LandingQueue>
  /** Replaces the holder `expected`. False if another process has already done so. */
  claimQueue(codebaseId: CodebaseId, expected: LandingQueue['holder'], holder: LandingQueue['holder']): Promise<boolean>
  updateQueue(codebaseId: CodebaseId, patch: Partial<Pick<LandingQueue, 'push' | 'green' | 'blocked'>>): Promise<void>
  /** Queues that can't go on. */
  blockedQueues(): Promise<LandingQueue[]>
}

/** up: pools are kept at their size. down: a person stopped it. paused: it stopped itself. Only `up` starts agents. */
export type FleetControl = {
  readonly state: 'up' | 'down' | 'paused'
  readonly why: string
  readonly since: number
}

export type FleetControlStore = {
  /** `up` if it was never set. */
  get(host: string): Promise<FleetControl>
  /** Locks the row until the transaction ends, to decide about the host's agents. */
  lock(host: string): Promise<FleetControl>
  set(host: string, control: FleetControl): Promise<void>
}

/** What the patrol has seen in earlier rounds, about an agent or about the fleet of a host. */
export type PatrolNote = {
  /** An agent's id, or `fleet`. */
  readonly subject: string
  /** The row of the patrol, or what else is remembered. */
  readonly what: string
  /** The spawn token of the agent's session. A note about an earlier session says nothing about this one. */
  readonly life: string
  readonly firstSeen: number
  readonly lastSeen: number
  /** In how many rounds. */
  readonly times: number
  readonly reportedAt: number | undefined
  readonly data: Readonly<Record<string, unknown>>
}

export type SeenAgain = Pick<PatrolNote, 'subject' | 'what' | 'life'> & {
  readonly at: number
  /** Replaces what was recorded. */
  readonly data?: PatrolNote['data']
}

export type PatrolNoteStore = {
  ofHost(host: string): Promise<PatrolNote[]>
  /** Counts another round. Begins anew if the note is about an earlier session. */
  see(host: string, seen: SeenAgain): Promise<PatrolNote>
  /** True for the one caller that is to report it. */
  report(host: string, note: Pick<PatrolNote, 'subject' | 'what' | 'life'>, at: number): Promise<boolean>
  /** Forgets it: it no longer lasts. */
  clear(host: string, notes: readonly Pick<PatrolNote, 'subject' | 'what'>[]): Promise<void>
}

/** How far a hook of `config.yaml` has got. `key` identifies what it does, whatever its place in the file. */
export type HookState = {
  readonly key: string
  /** The number of the last event that it is done with. */
  readonly position: number
  /** Failed attempts to deliver the next one. */
  readonly attempts: number
  readonly nextAttemptAt: number
  /** Its last failure; undefined if it has delivered since. */
  readonly failure: { readonly at: number; readonly error: string } | undefined
  /** The process that is delivering. */
  readonly holder: ProcessIdentity | undefined
}

export type HookPatch = Partial<Pick<HookState, 'position' | 'attempts' | 'nextAttemptAt' | 'failure'>>

export type HookStore = {
  /** Adds a hook that is new, to start after the event with this number. Returns it as it is now. */
  ensure(host: string, key: string, position: number): Promise<HookState>
  list(host: string): Promise<HookState[]>
  /** Replaces the holder `expected`. False if another process has already done so. */
  claim(host: string, key: string, expected: HookState['holder'], holder: HookState['holder']): Promise<boolean>
  /** False if this process no longer holds it. */
  update(host: string, key: string, holder: ProcessIdentity, patch: HookPatch): Promise<boolean>
  /** Deletes those that are no longer configured. */
  keepOnly(host: string, keys: readonly string[]): Promise<void>
}

/** All of them, as parts of the store. */
export type FleetStores = {
  readonly items: ItemStore
  readonly fleetAgents: FleetAgentStore
  readonly formulaRuns: FormulaRunStore
  readonly landings: LandingStore
  readonly fleetControl: FleetControlStore
  readonly patrolNotes: PatrolNoteStore
  readonly hooks: HookStore
}

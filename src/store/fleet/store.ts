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
import type { Landing, LandingState } from '../../domain/fleet/landing.ts'
import type { CodebaseId, EnvironmentId } from '../../domain/names.ts'
import type { ProcessIdentity } from '../../domain/process-identity.ts'

export type NewItem = Pick<
  Item,
  'codebaseId' | 'title' | 'body' | 'priority' | 'after' | 'source' | 'createdBy' | 'createdAt'
>

/** Its source is known, and so is its id: others of the same import may wait for it. */
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
  /** What goes with the new state; an absent field keeps its value, `undefined` clears it. */
  readonly patch?: Partial<Pick<Item, 'environmentId' | 'parked' | 'pullRequest'>>
}

/** An absent field keeps its value, `undefined` clears it. */
export type ItemPatch = Partial<Pick<Item, 'environmentId' | 'parked' | 'pullRequest'>> & {
  /** Never another one: only what is kept with it changes. */
  readonly source?: ItemSource
}

export type ItemStore = {
  /** Assigns the id. Undefined if the codebase has an item from this source. */
  insert(item: NewItem): Promise<Item | undefined>
  /** False if its id is taken. */
  recover(item: RecoveredItem): Promise<boolean>
  get(id: number): Promise<Item | undefined>
  bySource(codebaseId: CodebaseId, key: string): Promise<Item | undefined>
  /** Those that were imported from there, by id. */
  fromSource(codebaseId: CodebaseId, kind: SourceKind): Promise<Item[]>
  /** The first of so many ids in a row. Call in the transaction that uses them. */
  takeIds(count: number): Promise<number>
  /** Adds them all, whoever waits for whom. Call with `lockDependencies`: none of them may be known by its source. */
  insertImported(items: readonly ImportedItem[]): Promise<void>
  /** By id. */
  list(filter: ItemFilter): Promise<Item[]>
  /** Open, and all that they wait for is settled. The most urgent first, then the oldest. */
  ready(filter: { readonly codebaseIds?: readonly CodebaseId[]; readonly limit?: number }): Promise<Item[]>
  ofEnvironments(ids: readonly EnvironmentId[]): Promise<Item[]>
  /** Checked against the transition table, with an entry in its history. False if it is no longer `from`. */
  move(id: number, move: ItemMove): Promise<boolean>
  /** What each item waits for. Until the transaction ends, nobody else changes that. */
  lockDependencies(): Promise<ReadonlyMap<number, readonly number[]>>
  /** `from`: it was changed there. */
  edit(
    id: number,
    patch: Partial<Pick<Item, ItemField>>,
    signed: Signed & { readonly from?: SourceKind },
  ): Promise<void>
  update(id: number, patch: ItemPatch): Promise<void>
  /** The environment is gone. */
  detachEnvironment(id: EnvironmentId): Promise<void>
  note(id: number, change: ItemChange, signed: Signed): Promise<void>
  /** Oldest first. */
  history(id: number): Promise<ItemHistoryEntry[]>
  counts(codebaseId?: CodebaseId): Promise<ItemCounts>
  /** The conversation is told what becomes of the item. */
  follow(id: number, conversation: string, at: number): Promise<void>
  /** The ids of the conversations' rows. */
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
  /** The last one of this name that is gone. */
  lastGone(host: string, name: string): Promise<FleetAgent | undefined>
  /** Those that aren't gone, by name. */
  live(filter?: { readonly host?: string; readonly codebaseId?: CodebaseId }): Promise<FleetAgent[]>
  ofItems(ids: readonly number[]): Promise<FleetAgent[]>
  /** Those that aren't gone. */
  ofEnvironments(ids: readonly EnvironmentId[]): Promise<FleetAgent[]>
  /** Checked against the transition table; false if it is no longer `from`. */
  move(id: string, from: FleetAgentState, to: FleetAgentState, patch?: FleetAgentPatch): Promise<boolean>
  update(id: string, patch: FleetAgentPatch): Promise<void>
  /** Makes `holder` responsible instead of `expected`. False if somebody else already is. */
  claim(id: string, expected: ProcessIdentity, holder: ProcessIdentity): Promise<boolean>
  /** Deletes those that were gone before this time. */
  deleteGone(before: number): Promise<number>
}

export type FormulaRunPatch = Partial<
  Pick<FormulaRun, 'steps' | 'state' | 'sha' | 'pullRequest' | 'holder' | 'waiter' | 'branch'>
>

export type FormulaRunStore = {
  /** False if the agent has one that is running. */
  insert(run: FormulaRun): Promise<boolean>
  get(id: string): Promise<FormulaRun | undefined>
  /** Those that are running. */
  running(): Promise<FormulaRun[]>
  runningOf(agentId: string): Promise<FormulaRun | undefined>
  latestOfItem(itemId: number): Promise<FormulaRun | undefined>
  /** Makes us its executor if nobody, or this dead one, is. */
  claim(id: string, expected: FormulaRun['holder'], holder: NonNullable<FormulaRun['holder']>): Promise<boolean>
  update(id: string, patch: FormulaRunPatch, at: number): Promise<void>
}

export type LandingPatch = Partial<Pick<Landing, 'sha' | 'landedSha' | 'attempts' | 'gate'>>

export type LandingStore = {
  /** Queues the branch; an earlier landing of it that is still queued is superseded. */
  enqueue(
    landing: Pick<Landing, 'codebaseId' | 'itemId' | 'branch' | 'sha' | 'createdBy' | 'createdAt'>,
  ): Promise<Landing>
  get(id: number): Promise<Landing | undefined>
  /** Newest first. */
  list(filter: {
    readonly codebaseId?: CodebaseId
    readonly states?: readonly LandingState[]
    readonly limit: number
  }): Promise<Landing[]>
  move(id: number, from: LandingState, to: LandingState, at: number, patch?: LandingPatch): Promise<boolean>
}

/** up: it keeps its pools. down: a person stopped it. paused: it stopped itself, and starts nothing. */
export type FleetControl = {
  readonly state: 'up' | 'down' | 'paused'
  readonly why: string
  readonly since: number
}

export type FleetControlStore = {
  /** `up` if nobody has ever said otherwise. */
  get(host: string): Promise<FleetControl>
  /** Held until the transaction ends, to decide about the host's agents. */
  lock(host: string): Promise<FleetControl>
  set(host: string, control: FleetControl): Promise<void>
}

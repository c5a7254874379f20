import type { GateName } from '../../src/domain/removal/gates.ts'
import { type Work, sameWork } from '../../src/domain/work.ts'
import type { Snapshot } from './snapshot.ts'

/** What must be true of the world. It changes only by what a person did or by what an operation was allowed to do. */
export type Model = {
  now: number
  /** Live environments by id. */
  readonly environments: Map<string, Environment>
  readonly points: Map<string, Point>
  /** Every local branch and its tip. */
  readonly branches: Map<string, string>
  /** The bare origin's branches. */
  readonly origin: Map<string, string>
  /** Tips that were merged or squashed into origin's main. */
  readonly landed: Set<string>
  readonly conversations: Map<string, Conversation>
  /** Worktrees that a person made, adopted or not; nothing of Coppice may ever change them. */
  readonly strangers: Map<string, Stranger>
  /** Directories of environments that were given up while they were away: the files are still a person's. */
  readonly leftovers: Map<string, ReadonlyMap<string, string>>
  canonical: Snapshot
}

export type Environment = {
  readonly id: string
  readonly work: Work
  aliases: Work[]
  readonly path: string
  readonly branch: string
  readonly owned: boolean
  readonly origin: 'created' | 'existing'
  /** Made from main and never removed since: then what is its own is certain. */
  readonly plain: boolean
  /** Commits were made on its branch. */
  own: boolean
  lastActivityAt: number
  snapshot: Snapshot
  /** Commits that only a reflog knows. */
  readonly lost: string[]
  /** Where the directory was put; undefined while it is in its place. */
  away: string | undefined
  /** A person has locked it, or a process works in it. */
  inUse: boolean
  /** A persistent chat has worked in it. */
  persistent: boolean
}

export type Point = {
  readonly environment: Environment
  readonly expiresAt: number
  /** Its files were away, and only git's record was saved. */
  readonly missing: boolean
}

export type Conversation = {
  readonly name: string
  readonly persistent: boolean
  environment: string | undefined
  lastActivityAt: number
  closed: boolean
}

export type Stranger = { readonly branch: string; snapshot: Snapshot }

export const day = 24 * 60 * 60 * 1000
const hour = 60 * 60 * 1000

/** By its own identity or by an alias. */
export const findByWork = (model: Model, work: Work): Environment | undefined =>
  [...model.environments.values()].find((one) => [one.work, ...one.aliases].some((each) => sameWork(each, work)))

export const strangerOf = (model: Model, environment: Environment): Stranger | undefined =>
  model.strangers.get(environment.path)

/** `untouched`: it came with commits of others and has none of its own; its branch may stay or go. */
export type MergedOracle = 'yes' | 'no' | 'empty' | 'untouched' | 'unknown'

/** What a person who knows the history would say. `isOnMain`: the tip is in the history of origin's main. */
export const mergedOf = (model: Model, environment: Environment, isOnMain: (sha: string) => boolean): MergedOracle => {
  const tip = model.branches.get(environment.branch)
  if (tip === undefined) return 'unknown'
  const landed = model.landed.has(tip)
  if (!environment.plain && (landed || isOnMain(tip))) return 'unknown'
  if (!environment.plain) return environment.own ? 'no' : 'untouched'
  if (!environment.own) return 'empty'
  if (landed) return 'yes'
  return isOnMain(tip) ? 'unknown' : 'no'
}

export type RemovalQuestion = {
  readonly trigger: 'command' | 'closed' | 'merged' | 'stale' | 'room'
  readonly force: boolean
  readonly merged: MergedOracle
  /** `git status` has something to say. */
  readonly dirty: boolean
  /** HEAD is detached on a commit that no ref has. */
  readonly unreachable: boolean
}

/** The gates that must refuse. Two answers where it is open whether the work counts as merged. */
export const refusingGates = (model: Model, environment: Environment, asked: RemovalQuestion): Set<GateName>[] => {
  const merged = asked.merged === 'unknown' ? ['yes', 'no'] : [asked.merged]
  return merged.map((value) => {
    const gates = new Set<GateName>()
    if (environment.inUse && environment.away === undefined) gates.add('not-in-use')
    if (asked.force) return gates
    if (isHeld(model, environment, asked.trigger, value === 'yes' ? hour : 14 * day)) gates.add('nobody-elses')
    if (asked.dirty || environment.away !== undefined) gates.add('nothing-uncommitted')
    if (asked.unreachable && environment.away === undefined) gates.add('nothing-unreachable')
    return gates
  })
}

const isHeld = (model: Model, { id, persistent }: Environment, trigger: string, grace: number): boolean =>
  (persistent && trigger !== 'command') ||
  [...model.conversations.values()].some(
    ({ environment, closed, lastActivityAt }) => environment === id && !closed && model.now - lastActivityAt < grace,
  )

/** A removal takes the branch with it only with proof; two answers where the proof is open. */
export const branchMayGo = (environment: Environment, merged: MergedOracle): boolean[] => {
  if (environment.origin === 'existing' || environment.away !== undefined || merged === 'no') return [false]
  return merged === 'unknown' || merged === 'untouched' ? [true, false] : [true]
}

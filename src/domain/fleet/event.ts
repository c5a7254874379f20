import type { DoneRefusal } from './done-refusal.ts'
import type { Landing, LandingBlock, LandingProblem } from './landing.ts'
import type { Item, ParkReason } from './item.ts'

/** What a sentence about an event needs to know of an item. */
export type ItemName = Pick<Item, 'id' | 'title'>

/**
 * Something that happened in the fleet. It is recorded, and notifications are sent, in the transaction that makes the
 * change. `event-record.ts` has the stored form, and `needs-person.ts` says which events need a person.
 */
export type FleetEvent<I extends ItemName = Item> = ItemEvent<I> | AgentEvent | AlertEvent
export type FleetEventKind = FleetEvent['kind']

/** Sent to the conversations that follow the item. */
export type ItemEvent<I extends ItemName = Item> = { readonly item: I } & (
  | { readonly kind: 'started' | 'restarted'; readonly agent: string }
  | { readonly kind: 'parked'; readonly reason: ParkReason }
  /** `coppice done` was refused, and only a person can change why. */
  | { readonly kind: 'refused'; readonly agent: string; readonly why: DoneRefusal }
  | { readonly kind: 'pull-request'; readonly url: string }
  /** `not-pushed`: the repository has no remote. */
  | { readonly kind: 'pushed' | 'not-pushed'; readonly branch: string }
  | { readonly kind: 'queued'; readonly landing: number }
  /** It couldn't land, and its agent has to work on it again. */
  | { readonly kind: 'sent-back'; readonly agent: string; readonly landing: number; readonly why: LandingProblem }
  | { readonly kind: 'landed' | 'closed' | 'reopened' }
)

/** What the patrol found about an agent. `itemId`: the item it was working on. */
export type AgentEvent = { readonly agent: string; readonly itemId: number | undefined } & (
  | { readonly kind: 'crashed'; readonly restarts: number }
  | { readonly kind: 'stuck'; readonly since: number }
  /** A session whose worktree is gone was ended. */
  | { readonly kind: 'stray-ended' }
)

export type AlertEvent =
  /** Several agents died at once, so none are started until `fleet up`. */
  | { readonly kind: 'mass-death'; readonly agents: readonly string[] }
  /** A gate failed once and passed again on the same tree. */
  | { readonly kind: 'flaky-gate'; readonly landing: Landing['id']; readonly command: string; readonly log: string }
  /** Nothing can land in the repository. Reported once for each reason. */
  | { readonly kind: 'landing-blocked'; readonly codebase: string; readonly why: LandingBlock }
  /** A hook failed at every attempt, so it never gets the event with this number. */
  | { readonly kind: 'hook-failed'; readonly hook: string; readonly event: number; readonly why: string }

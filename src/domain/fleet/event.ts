import type { Landing, LandingProblem } from './landing.ts'
import type { Item, ParkReason } from './item.ts'

/** Something that happened in the fleet. Notifications are sent in the transaction that records it. */
export type FleetEvent = ItemEvent | AgentEvent | AlertEvent

/** Sent to the conversations that follow the item. */
export type ItemEvent = { readonly item: Item } & (
  | { readonly kind: 'started' | 'restarted'; readonly agent: string }
  | { readonly kind: 'parked'; readonly reason: ParkReason }
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

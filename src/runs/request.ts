import type { AgentEvent, AgentRequest, AgentResult, AgentRules } from '../agents/agent.ts'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import type { IsolationHints } from '../domain/hints.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import type { Work } from '../domain/work.ts'
import type { Holder } from '../domain/holder.ts'
import type { Resolution } from '../isolation/resolution.ts'
import type { LimitReport } from '../isolation/resolution.ts'
import type { Store } from '../store/store.ts'
import type { BudgetReached } from './budget.ts'
import type { EndedRunReport } from './ended-runs.ts'
import type { Leftovers } from './leftovers.ts'
import type { Turns } from './turns.ts'
import type { CheckoutChange } from '../domain/checkout-change.ts'

/** One run of an agent: what to do, where, for whom, and who hears about it. */
export type RunRequest = {
  /** Its processes are found again by this and the attempt, also after a crash. */
  readonly id: string
  /** From 1; above that, an earlier attempt was interrupted. */
  readonly attempt: number
  readonly codebase: Codebase
  readonly work: Work
  readonly hints: IsolationHints
  readonly prompt: string
  /** What the agent should know beside the prompt. */
  readonly context: string | undefined
  readonly rules: AgentRules
  /** A run that only reads may do so in the shared checkout, where the work has no environment yet. */
  readonly needsIsolation: boolean
  /** Undefined: the default of the codebase, else of the configuration, else the first that is ready. */
  readonly agent: string | undefined
  readonly holder: RunHolder
  /** Where what is found after the run has ended is reported. */
  readonly reportTo: RunAddress
  readonly reporter: RunReporter
  /** One run at a time in each environment. */
  readonly turns: Turns
  /** Aborted with the reason `stop` by the user, `time-limit` by the limit, with anything else by our own end. */
  readonly signal: AbortSignal
}

/** A conversation, by the names its platform gave. */
export type RunAddress = { readonly platform: string; readonly conversationId: string; readonly messageId: string }

/** Whose run it is: whoever keeps the session, uses up the budget and holds the environment. */
export type RunHolder = Holder & {
  /** For leases and logs. */
  readonly name: string
}

/**
 * Hears what happens. What takes a store is called inside the transaction that records the same fact, so that it is told
 * exactly if it is recorded: a crash neither hides it nor tells it twice.
 */
export type RunReporter = {
  /** The environment that the run will work in, with what is worth knowing about how it was found. */
  placed(store: Store, place: Placed): Promise<void>
  /** Another run is at work there. `wait` returns when it has ended. */
  busy(environment: IsolatedEnvironment, wait: () => Promise<void>): Promise<void>
  /** Before the agent starts: what earlier runs did after their end, and what changed in git's own files since. */
  found(store: Store, found: FoundBefore): Promise<void>
  /** What the two before have told is committed. */
  committed(): void
  /** Text and tools as they come, with secrets hidden. */
  event(event: Extract<AgentEvent, { type: 'text' | 'tool' }>): void
  /** For agents that ask before they act. */
  ask(signal: AbortSignal): NonNullable<AgentRequest['ask']>
  /** The agent's process exists. */
  began(child: ProcessIdentity): Promise<void>
  /** Which processes are there after the agent's end. */
  left(left: Leftovers): void
}

export type Placed = Extract<Resolution, { outcome: 'resolved' }> & {
  /** The holder had another environment, or none. */
  readonly isNew: boolean
}

export type FoundBefore = {
  readonly ended: readonly EndedRunReport[]
  readonly planted: readonly string[]
}

export type RunResult =
  /** The codebase has as many environments as it may have. */
  | { readonly outcome: 'limit'; readonly report: LimitReport }
  /** Nothing was run. */
  | { readonly outcome: 'over-budget'; readonly reached: BudgetReached }
  | (Omit<AgentResult, 'usage'> & RunEnd)

/** What is there and what changed when the agent has ended. */
export type RunEnd = {
  /** In the transaction that records the answer. */
  readonly record: (store: Store) => Promise<void>
  readonly left: Leftovers
  /** Changes in the shared checkout. */
  readonly tripped: readonly CheckoutChange[]
  /** Changes in git's own files. */
  readonly planted: readonly string[]
}

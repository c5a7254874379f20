import type { AgentAttachment, AgentEvent, AgentRequest, AgentResult, AgentRules } from '../agents/agent.ts'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import type { IsolationHints } from '../domain/hints.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import type { Work } from '../domain/work.ts'
import type { Holder } from '../domain/holder.ts'
import type { Resolution } from '../isolation/resolve/resolution.ts'
import type { LimitReport } from '../isolation/resolve/resolution.ts'
import type { Store } from '../store/store.ts'
import type { BudgetReached } from './budget.ts'
import type { EndedRunReport } from './ended-runs.ts'
import type { Leftovers } from './leftovers.ts'
import type { Turns } from './turns.ts'
import type { CheckoutChange } from '../domain/checkout-change.ts'

/** One run of an agent: the task, where, for whom, and who is notified. */
export type RunRequest = {
  /** With the attempt, identifies the run's processes, even after a crash. */
  readonly id: string
  /** From 1; higher if an earlier attempt was interrupted. */
  readonly attempt: number
  /** Whether an attempt above 1 repeats an interrupted run (default: yes). */
  readonly isRerun?: boolean
  readonly codebase: Codebase
  readonly work: Work
  readonly hints: IsolationHints
  readonly prompt: string
  /** What the user said, if nothing was said before. */
  readonly firstMessage?: string
  /** Context for the agent beside the prompt. */
  readonly context: string | undefined
  /** Files that came with it. */
  readonly attachments: readonly AgentAttachment[]
  readonly rules: AgentRules
  /** A read-only run may use the shared checkout if the work has no environment yet. */
  readonly needsIsolation: boolean
  /** Undefined: the default of the codebase, then of the configuration, then the first ready one. */
  readonly agent: string | undefined
  readonly holder: RunHolder
  /** The fleet's agent that this run belongs to. No other agent may be working in the environment. */
  readonly fleetAgent?: string
  /** In addition to those that every agent gets. */
  readonly variables?: Readonly<Record<string, string>>
  readonly outside?: AgentRequest['outside']
  /** Where to report what is found after the run. */
  readonly reportTo: RunAddress
  readonly reporter: RunReporter
  /** One run at a time in each environment. */
  readonly turns: Turns
  /** Abort reasons: `stop` by the user, `time-limit` by the limit, anything else is our shutdown. */
  readonly signal: AbortSignal
}

/** A conversation, by its platform's IDs. */
export type RunAddress = { readonly platform: string; readonly conversationId: string; readonly messageId: string }

/** The run's owner: keeps the session, uses the budget and holds the environment. */
export type RunHolder = Holder & {
  /** For leases and logs. */
  readonly name: string
  /** Its environments are its user's own. */
  readonly persistent?: boolean
}

/**
 * Callbacks of a run. Those that take a store are called inside the transaction that records the same fact, so that it
 * is reported exactly if recorded: a crash neither hides nor repeats it.
 */
export type RunReporter = {
  /** The run's environment, with notices about how it was found. Records what it says in one transaction. */
  placed(place: Placed): Promise<void>
  /** Another run is using it. `wait` resolves when that has ended. */
  busy(environment: IsolatedEnvironment, wait: () => Promise<void>): Promise<void>
  /** Before the agent starts: what earlier runs did after their end, and changes in git's own files. */
  found(store: Store, found: FoundBefore): Promise<void>
  /** What `placed` or `found` reported is committed. */
  committed(): void
  /** Text and tool calls as they arrive, redacted. */
  event(event: Extract<AgentEvent, { type: 'text' | 'tool' }>): void
  /** For agents that ask for permission. */
  ask(signal: AbortSignal): NonNullable<AgentRequest['ask']>
  /** The agent has started. */
  began(child: ProcessIdentity): Promise<void>
  /** Processes left after the agent ended. */
  left(left: Leftovers): void
}

export type Placed = Extract<Resolution, { outcome: 'resolved' }> & {
  /** The holder had another environment or none. */
  readonly isNew: boolean
}

export type FoundBefore = {
  readonly ended: readonly EndedRunReport[]
  readonly planted: readonly string[]
}

export type RunResult =
  /** The codebase is at its environment limit. */
  | { readonly outcome: 'limit'; readonly report: LimitReport }
  | { readonly outcome: 'over-budget'; readonly reached: BudgetReached }
  | (Omit<AgentResult, 'usage'> &
      RunEnd & {
        /** The agent was to continue its session, and couldn't. */
        readonly sessionLost: boolean
        /** The run was read-only, but the agent could have written. */
        readonly notReadOnly: boolean
        /** Undefined: it read in the shared checkout. */
        readonly environment: IsolatedEnvironment | undefined
        /** Both files and request came from the repository itself. */
        readonly trusted: boolean
        /** The environment's branch moved. */
        readonly committed: boolean
      })

/** What remains and what changed after the agent ended. */
export type RunEnd = {
  /** In the transaction that records the reply. */
  readonly record: (store: Store) => Promise<void>
  readonly left: Leftovers
  /** Changes in the shared checkout. */
  readonly tripped: readonly CheckoutChange[]
  /** Changes in git's own files. */
  readonly planted: readonly string[]
}

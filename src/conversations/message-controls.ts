import type { Questions } from './questions.ts'
import type { WhileWaiting } from './inbox/run-slots.ts'
import type { Leftovers } from '../runs/leftovers.ts'
import type { Turns } from '../runs/turns.ts'
import type { Stopped } from '../runs/stop-run.ts'

/** What handling a message needs beside the context. */
export type MessageControls = {
  /** Abort reasons: `stop` by the user, `time-limit` by the limit, anything else is our shutdown. */
  readonly signal: AbortSignal
  /** Frees the slot and stops the clock while waiting. */
  readonly whileWaiting: WhileWaiting
  readonly turns: Turns
  /** Stops this conversation's run. */
  readonly stop: () => Promise<Stopped>
  /** Called with the processes left after the agent ended. */
  readonly onLeft?: (left: Leftovers) => void
  readonly questions: Questions
}

/** The outcome, for the counters. `put-back`: not answered, will be retried. */
export type Handled = 'answered' | 'stopped' | 'failed' | 'put-back'

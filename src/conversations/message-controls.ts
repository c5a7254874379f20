import type { Questions } from './questions.ts'
import type { WhileWaiting } from './inbox/run-slots.ts'
import type { Leftovers } from '../runs/leftovers.ts'
import type { Turns } from '../runs/turns.ts'
import type { Stopped } from '../runs/stop-run.ts'

/** What a message needs beside the context while it is worked on. */
export type MessageControls = {
  /** Aborted with the reason `stop` by the user, `time-limit` by the limit, with anything else by our own end. */
  readonly signal: AbortSignal
  /** Gives the place up while this waits, and stops the clock. */
  readonly whileWaiting: WhileWaiting
  readonly turns: Turns
  /** Ends what runs in this conversation. */
  readonly stop: () => Promise<Stopped>
  /** Told which processes were there after the agent's end. */
  readonly onLeft?: (left: Leftovers) => void
  readonly questions: Questions
}

/** What it came to, for the counters. `put-back`: it was not answered and will be run again. */
export type Handled = 'answered' | 'stopped' | 'failed' | 'put-back'

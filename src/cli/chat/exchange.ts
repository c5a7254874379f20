/*
 * `coppice chat`. In: a message. Out: its replies, from a running server or from this process.
 */
import type { Change } from '../../conversations/changes.ts'
import type { HistoryEntry } from '../../platforms/history.ts'

export type Sending = {
  readonly conversationId: string
  readonly deliveryId: string
  readonly text: string
  readonly codebase: string | undefined
  /** Named with --codebase: moves the conversation if it has another one. */
  readonly move: boolean
  readonly agent: string | undefined
}

/** Sends a message and returns its replies, once complete. */
export type Exchange = (
  sending: Sending,
  watch: (change: Change) => void,
  signal: AbortSignal,
) => Promise<readonly HistoryEntry[]>

/** The replies to one message; others may be in between. Undefined: not done yet. */
export const answersTo = (history: readonly HistoryEntry[], id: string): readonly HistoryEntry[] | undefined => {
  if (history.find((entry) => entry.id === id)?.state !== 'done') return undefined
  const answers = history.filter(({ about }) => about === id)
  return answers.some(({ state }) => state === 'waiting') ? undefined : answers
}

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
  /** It was named with --codebase: the conversation moves there if it is about another one. */
  readonly move: boolean
  readonly agent: string | undefined
}

/** Says something and answers what was said in return, once all of it is there. */
export type Exchange = (
  sending: Sending,
  watch: (change: Change) => void,
  signal: AbortSignal,
) => Promise<readonly HistoryEntry[]>

/** What was said about one message; others may have been asked before it was answered. Undefined: not done yet. */
export const answersTo = (history: readonly HistoryEntry[], id: string): readonly HistoryEntry[] | undefined => {
  if (history.find((entry) => entry.id === id)?.state !== 'done') return undefined
  const answers = history.filter(({ about }) => about === id)
  return answers.some(({ state }) => state === 'waiting') ? undefined : answers
}

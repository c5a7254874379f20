import type { Change } from '../../conversations/changes.ts'
import type { HistoryEntry } from '../../platforms/history.ts'

export type Sending = {
  readonly conversationId: string
  readonly deliveryId: string
  readonly text: string
  readonly codebase: string | undefined
  readonly agent: string | undefined
}

/** Says something and answers what was said in return, once all of it is there. */
export type Exchange = (
  sending: Sending,
  watch: (change: Change) => void,
  signal: AbortSignal,
) => Promise<readonly HistoryEntry[]>

/** What was said about one message: everything after it, until the next thing the user said. Undefined: not done yet. */
export const answersTo = (history: readonly HistoryEntry[], id: string): readonly HistoryEntry[] | undefined => {
  const own = history.findIndex((entry) => entry.id === id)
  const asked = history[own]
  if (asked?.state !== 'done') return undefined
  const after = history.slice(own + 1)
  const next = after.findIndex(({ role }) => role === 'user')
  const answers = next === -1 ? after : after.slice(0, next)
  return answers.some(({ state }) => state === 'waiting') ? undefined : answers
}

import type { Changes } from '../conversations/changes.ts'
import type { Conversations } from '../conversations/conversations.ts'

/** Counted since the process started. */
export type Metrics = {
  /** Wraps `accept` to count its outcomes. Every platform gets the wrapped one. */
  countAccepted(accept: Conversations['accept']): Conversations['accept']
  /** Counts a processed message by its outcome. */
  handled(outcome: string): void
  counters(): readonly Sample[]
}

export type Sample = {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export const createMetrics = (changes: Changes): Metrics => {
  const samples = new Map<string, { -readonly [K in keyof Sample]: Sample[K] }>()
  const count = (name: string, labels: Readonly<Record<string, string>>, by = 1): void => {
    const key = `${name} ${JSON.stringify(labels)}`
    const known = samples.get(key)
    if (known === undefined) samples.set(key, { name, labels, value: by })
    else known.value += by
  }
  changes.subscribe((change) => {
    if (change.type === 'reply') count('coppice_replies_sent_total', { platform: change.platform, role: change.role })
    if (change.type === 'cleanup') count('coppice_cleanup_removed_total', {}, change.removed)
  })
  return {
    countAccepted: (accept) => async (message) => {
      const answer = await accept(message)
      count(`coppice_messages_${answer.outcome}_total`, { platform: message.platform })
      return answer
    },
    handled: (outcome) => count('coppice_messages_handled_total', { outcome }),
    counters: () => [...samples.values()],
  }
}

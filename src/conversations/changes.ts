/** What changed, for whoever watches: the event stream, the command line that waits for its answer. */
export type Change =
  | {
      readonly type: 'message'
      readonly platform: string
      readonly conversationId: string
      readonly id: string
      readonly state: 'waiting' | 'running' | 'done'
    }
  | {
      readonly type: 'reply'
      readonly platform: string
      readonly conversationId: string
      readonly id: string
      readonly role: 'agent' | 'system'
      readonly text: string
    }
  /** What the agent has just said or done; not recorded, the reply is. */
  | {
      readonly type: 'progress'
      readonly platform: string
      readonly conversationId: string
      readonly kind: 'text' | 'tool'
      readonly text: string
    }
  | { readonly type: 'environment'; readonly id: string; readonly codebaseId: string; readonly status: string }
  | { readonly type: 'codebase'; readonly id: string; readonly name: string }
  | { readonly type: 'cleanup'; readonly codebaseId: string; readonly removed: number; readonly skipped: number }

export type Changes = {
  emit(change: Change): void
  /** Answers what ends it. A listener that throws is logged by nobody and harms nobody. */
  subscribe(listener: (change: Change) => void): () => void
}

export const createChanges = (): Changes => {
  const listeners = new Set<(change: Change) => void>()
  return {
    emit: (change) => {
      for (const listener of listeners) {
        try {
          listener(change)
        } catch {
          // Whoever watches must not be able to stop the work.
        }
      }
    },
    subscribe: (listener) => {
      // A wrapper, so that one function may watch twice.
      const own = (change: Change): void => listener(change)
      listeners.add(own)
      return () => listeners.delete(own)
    },
  }
}

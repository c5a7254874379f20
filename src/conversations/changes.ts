/** Changes, for the event stream and for the command line waiting for its reply. */
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
  /** The agent's latest text or tool call. Only the reply is recorded. */
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
  /** Returns the unsubscribe function. A listener that throws is ignored. */
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
          // A listener must not stop the work.
        }
      }
    },
    subscribe: (listener) => {
      // Wrapped, so that a function can subscribe twice.
      const own = (change: Change): void => listener(change)
      listeners.add(own)
      return () => listeners.delete(own)
    },
  }
}

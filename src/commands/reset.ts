import { command } from './command.ts'
import { onlyInChat } from './only-in-chat.ts'

export const reset = command<boolean>({
  run: async (call) => {
    const { conversation } = onlyInChat(call, 'reset')
    const { context } = await call.open()
    return context.store.sessions.end(conversation.id, 'reset', context.clock())
  },
  toText: (ended) =>
    ended
      ? 'Session ended. The next message starts a new one; the worktree is unchanged.'
      : 'No active session. The next message starts one.',
  toJson: (ended) => ({ ended }),
})

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
      ? 'The session has ended: the next message starts afresh. The worktree stays as it is.'
      : 'There is no session: the next message starts one.',
  toJson: (ended) => ({ ended }),
})

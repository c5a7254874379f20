import type { Call } from './command.ts'

/** Who asked, as shown to others. */
export const askerOf = ({ chat }: Pick<Call, 'chat'>): string =>
  chat === undefined ? 'the command line' : `${chat.conversation.platform}:${chat.conversation.conversationId}`

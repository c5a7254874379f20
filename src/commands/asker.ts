import type { Call } from './command.ts'

/** Who asked, for those who are told. */
export const askerOf = ({ chat }: Pick<Call, 'chat'>): string =>
  chat === undefined ? 'the command line' : `${chat.conversation.platform}:${chat.conversation.conversationId}`

export type ChatAddress = { readonly chat: number; readonly thread: number | undefined }

/** `-1001234` is a chat, `-1001234:17` a forum topic. */
export const conversationIdOf = ({ chat, thread }: ChatAddress): string =>
  thread === undefined ? String(chat) : `${chat}:${thread}`

export const addressOf = (conversationId: string): ChatAddress | undefined => {
  const [, chat, thread] = /^(-?\d{1,16})(?::(\d{1,16}))?$/.exec(conversationId) ?? []
  if (chat === undefined) return undefined
  return { chat: Number(chat), thread: thread === undefined ? undefined : Number(thread) }
}

/** Groups and channels have negative ids. */
export const isGroup = ({ chat }: ChatAddress): boolean => chat < 0

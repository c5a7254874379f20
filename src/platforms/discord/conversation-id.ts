/** A conversation's location: a thread, or a channel (direct messages, commands in a channel). */
export type ChatAddress = { readonly channel: string; readonly parent: string | undefined }

/**
 * `parent:thread`, or the channel alone. It includes the parent because the thread is created only after its first
 * message is durable: after a crash in between, a reply can still create it.
 */
export const conversationIdOf = ({ channel, parent }: ChatAddress): string =>
  parent === undefined ? channel : `${parent}:${channel}`

export const addressOf = (conversationId: string): ChatAddress => {
  const at = conversationId.indexOf(':')
  return at === -1
    ? { channel: conversationId, parent: undefined }
    : { channel: conversationId.slice(at + 1), parent: conversationId.slice(0, at) }
}

/** Discord's own ID of a thread; undefined for a channel. */
export const threadIdOf = (conversationId: string): string | undefined => {
  const { channel, parent } = addressOf(conversationId)
  return parent === undefined ? undefined : channel
}

/** Where a conversation is: a thread of a channel, or a channel (direct messages, commands said in a channel). */
export type Place = { readonly channel: string; readonly parent: string | undefined }

/**
 * `parent:thread`, or the channel alone. The parent is part of it because the thread is made only after its first
 * message is durable: after a crash in between, a reply can still make it.
 */
export const conversationIdOf = ({ channel, parent }: Place): string =>
  parent === undefined ? channel : `${parent}:${channel}`

export const placeOf = (conversationId: string): Place => {
  const at = conversationId.indexOf(':')
  return at === -1
    ? { channel: conversationId, parent: undefined }
    : { channel: conversationId.slice(at + 1), parent: conversationId.slice(0, at) }
}

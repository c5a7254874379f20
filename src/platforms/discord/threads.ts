import { BoundedMap } from '../../domain/bounded-map.ts'
import type { DiscordApi } from './client.ts'
import type { ChatAddress } from './conversation-id.ts'
import { errorCodes, hasErrorCode } from './errors.ts'

/** Opens threads. Where the bot isn't allowed to, the conversation is held in the channel. */
export type Threads = {
  /** False: it existed already, and may have messages. */
  open(place: ChatAddress, name: string): Promise<boolean>
  /** Where messages go. `replyTo`: the message that the conversation began with. */
  targetOf(place: ChatAddress): { readonly channel: string; readonly replyTo: string | undefined }
}

const MAX_REMEMBERED = 10_000

export const createThreads = (api: Pick<DiscordApi, 'startThread'>): Threads => {
  /** By their first message, whose ID the thread would have. */
  const inChannel = new BoundedMap<string, true>(MAX_REMEMBERED)
  return {
    open: async ({ channel, parent }, name) => {
      if (parent === undefined || inChannel.has(channel)) return false
      try {
        await api.startThread(parent, channel, name)
        return true
      } catch (error) {
        if (hasErrorCode(error, errorCodes.threadExists)) return false
        if (!isForbidden(error)) throw error
        inChannel.set(channel, true)
        return true
      }
    },
    targetOf: ({ channel, parent }) =>
      parent !== undefined && inChannel.has(channel)
        ? { channel: parent, replyTo: channel }
        : { channel, replyTo: undefined },
  }
}

const isForbidden = (error: unknown): boolean =>
  hasErrorCode(error, errorCodes.missingPermissions) || hasErrorCode(error, errorCodes.missingAccess)

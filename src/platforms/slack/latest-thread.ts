import type { PlatformMemory } from '../memory.ts'
import { isAboutThread } from './message/command-words.ts'
import { threadOf } from './message/parse.ts'

/**
 * The thread in which somebody last wrote to us, by channel. A slash command says in which channel it was used, not in
 * which thread; and in a direct message, people write `stop` below a thread instead of in it.
 */
export type LatestThread = {
  /** The conversation that a command outside any thread is about; undefined: none. */
  of(command: string, channel: string, user: string): Promise<string | undefined>
  set(conversationId: string, channel: string, user: string): Promise<void>
}

export const createLatestThread = (memory: Pick<PlatformMemory, 'get' | 'set'>): LatestThread => {
  const keyOf = (channel: string, user: string): string => `thread:${channel}:${user}`
  return {
    of: async (command, channel, user) => (isAboutThread(command) ? memory.get(keyOf(channel, user)) : undefined),
    set: async (conversationId, channel, user) => {
      if (threadOf(conversationId)?.threadTs !== undefined) await memory.set(keyOf(channel, user), conversationId)
    },
  }
}

import type { Logger } from '../process/log.ts'
import type { PlatformMemory } from './memory.ts'

const DAY_MS = 24 * 60 * 60 * 1000

export type StrangerParts = { readonly memory: Pick<PlatformMemory, 'once'>; readonly log: Logger }

/**
 * Tells somebody that they aren't an allowed user, at most once a day. `whisper` must reach that person alone; where
 * others would read it, don't call this. Never throws.
 */
export const tellStranger = async (
  { memory, log }: StrangerParts,
  userId: string | undefined,
  whisper: (text: string) => Promise<unknown>,
): Promise<void> => {
  if (userId === undefined || userId === '') return
  try {
    // Before sending: if that fails, it isn't repeated with each of their messages.
    if (await memory.once(`stranger:${userId.slice(0, 100)}`, DAY_MS)) await whisper(strangerText(userId))
  } catch (error) {
    log.debug("couldn't tell a user that they aren't allowed", { userId, error })
  }
}

/** Includes the ID, which whoever runs the server needs to allow them. */
export const strangerText = (userId: string): string =>
  `You aren't an allowed user of this bot, so it ignored your message. To change that, ask whoever runs it to allow your user ID, ${userId.slice(0, 100)}.`

import type { Logger } from '../process/log.ts'
import type { PlatformMemory } from './memory.ts'

const DAY_MS = 24 * 60 * 60 * 1000

export type StrangerParts = { readonly memory: Pick<PlatformMemory, 'once'>; readonly log: Logger }

/**
 * Tells somebody who isn't an allowed user so, at most once a day. `whisper` must reach that person alone: in a place
 * where others read along, say nothing. Never throws, and never delays anything that isn't waiting for it.
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
    log.debug('a stranger could not be told', { userId, error })
  }
}

/** Names their ID, since that is what whoever runs the server needs. */
export const strangerText = (userId: string): string =>
  `You aren't an allowed user of this bot, so it ignored your message. To change that, ask whoever runs it to allow your user ID, ${userId.slice(0, 100)}.`

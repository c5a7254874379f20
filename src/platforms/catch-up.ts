import type { PlatformMemory } from './memory.ts'

/** The newest message accepted in each place (a channel, a workspace): catching up starts after it. */
export type LastSeen = {
  get(place: string): Promise<string | undefined>
  /** Call only once the message is stored or known not to be for us: earlier messages are never read again. */
  advance(place: string, mark: string): Promise<void>
}

/**
 * Keeps the marks across restarts. Events of one place may arrive out of order, so a mark only ever moves forward.
 * `isLater` compares two of the service's own marks: timestamps, message IDs.
 */
export const createLastSeen = (
  memory: Pick<PlatformMemory, 'get' | 'set'>,
  isLater: (mark: string, than: string) => boolean,
): LastSeen => {
  const turns = new Map<string, Promise<unknown>>()
  const keyOf = (place: string): string => `seen:${place}`
  return {
    get: (place) => memory.get(keyOf(place)),
    advance: async (place, mark) => {
      const before = turns.get(place)
      const moveForward = async (): Promise<void> => {
        await before
        const seen = await memory.get(keyOf(place))
        if (seen === undefined || isLater(mark, seen)) await memory.set(keyOf(place), mark)
      }
      const mine = moveForward()
      const settled = mine.catch(() => undefined)
      turns.set(place, settled)
      await mine.finally(() => {
        if (turns.get(place) === settled) turns.delete(place)
      })
    },
  }
}

export type CatchUpOf<Message> = {
  readonly lastSeen: LastSeen
  readonly place: string
  /** Messages after the mark, oldest first. */
  readonly read: (since: string) => AsyncIterable<Message>
  readonly markOf: (message: Message) => string
  /**
   * Hands it to the same function as a live event, with the same delivery ID, so that a message which arrives both ways
   * is handled once. Throws if it wasn't stored.
   */
  readonly handle: (message: Message) => Promise<unknown>
  /** How many messages to handle at most (default: 200). */
  readonly most?: number
}

const MOST = 200

/** Handles the messages that one place received while the server was down. A place without a mark is skipped. */
export const catchUp = async <Message>(parts: CatchUpOf<Message>): Promise<{ handled: number; complete: boolean }> => {
  const { lastSeen, place, read, markOf, handle, most = MOST } = parts
  const since = await lastSeen.get(place)
  let handled = 0
  if (since === undefined) return { handled, complete: true }
  for await (const message of read(since)) {
    if (handled === most) return { handled, complete: false }
    await handle(message)
    await lastSeen.advance(place, markOf(message))
    handled += 1
  }
  return { handled, complete: true }
}

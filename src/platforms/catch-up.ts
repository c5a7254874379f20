import type { PlatformMemory } from './memory.ts'

/** The newest message accepted in each place (a channel, a workspace): catching up starts after it. */
export type LastSeen = {
  get(place: string): Promise<string | undefined>
  /** Call only once the message is stored or known not to be for us: earlier messages are never read again. */
  advance(place: string, mark: string): Promise<void>
  /**
   * The same for a message that has just been written. A stored mark that is much later came from our clock while that
   * was ahead, and is corrected.
   */
  advanceLive(place: string, mark: string): Promise<void>
}

/**
 * Keeps the marks across restarts. Events of one place may arrive out of order, so a mark moves forward only. `msOf`
 * says when one of the service's own marks was made: a timestamp, a message ID.
 */
export const createLastSeen = (
  memory: Pick<PlatformMemory, 'get' | 'set'>,
  {
    isLater,
    msOf,
  }: { readonly isLater: (mark: string, than: string) => boolean; readonly msOf: (mark: string) => number },
): LastSeen => {
  const turns = new Map<string, Promise<unknown>>()
  const keyOf = (place: string): string => `seen:${place}`
  const move = async (place: string, mark: string, isWrong: (seen: string) => boolean): Promise<void> => {
    const before = turns.get(place)
    const moveOne = async (): Promise<void> => {
      await before
      const seen = await memory.get(keyOf(place))
      if (seen === undefined || isLater(mark, seen) || isWrong(seen)) await memory.set(keyOf(place), mark)
    }
    const mine = moveOne()
    const settled = mine.catch(() => undefined)
    turns.set(place, settled)
    await mine.finally(() => {
      if (turns.get(place) === settled) turns.delete(place)
    })
  }
  return {
    get: (place) => memory.get(keyOf(place)),
    advance: (place, mark) => move(place, mark, () => false),
    advanceLive: (place, mark) => move(place, mark, (seen) => msOf(seen) - msOf(mark) > LONGEST_DELAY_MS),
  }
}

/** A service delivers a message within minutes; then it gives up. */
const LONGEST_DELAY_MS = 60 * 60_000

/** Older messages are ignored: nobody is waiting for an answer any more. */
export const MAX_MISSED_MS = 3 * 24 * 60 * 60_000

/**
 * When to read from, if this was the last message seen. If that is in the future, either clock was wrong: the time
 * before it is read, but no more than usual, since a clock that is far behind must not bring up old messages.
 */
export const missedSince = (seenMs: number, now: number, overlapMs = 0): number =>
  seenMs - overlapMs > now ? seenMs - MAX_MISSED_MS : Math.max(seenMs - overlapMs, now - MAX_MISSED_MS)

export type CatchUpOf<Message> = {
  readonly lastSeen: LastSeen
  readonly place: string
  /** Messages after the mark, oldest first. */
  readonly read: (since: string) => AsyncIterable<Message>
  readonly markOf: (message: Message) => string
  /**
   * Hands it to the same function as a live event, with the same delivery ID, so that a message which arrives both ways
   * is handled once. Resolves to whether it was for us. Throws if it wasn't stored.
   */
  readonly handle: (message: Message) => Promise<boolean>
  /** How many messages for us to handle at most. */
  readonly most: number
  /** How many to read at most. */
  readonly mostRead: number
}

/** Handles the messages that one place received while the server was down. A place without a mark is skipped. */
export const catchUp = async <Message>(parts: CatchUpOf<Message>): Promise<{ handled: number; complete: boolean }> => {
  const { lastSeen, place, read, markOf, handle, most, mostRead } = parts
  const since = await lastSeen.get(place)
  let handled = 0
  let count = 0
  if (since === undefined) return { handled, complete: true }
  for await (const message of read(since)) {
    if (handled === most || count === mostRead) return { handled, complete: false }
    count += 1
    if (await handle(message)) handled += 1
    await lastSeen.advance(place, markOf(message))
  }
  return { handled, complete: true }
}

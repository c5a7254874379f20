import { backoff } from '../../domain/backoff.ts'
import type { Logger } from '../../process/log.ts'
import type { PlatformMemory } from '../memory.ts'
import { continues, mayContinue, writerOf } from './join.ts'
import { deliveryIdOf, type TelegramSelf } from './parse.ts'
import { messagesPayload, type TelegramMessage } from './payload.ts'

/** Messages that wait a moment for their remaining parts. They are stored, so a crash in between loses nothing. */
export type HeldMessages = {
  /**
   * True: it is held (or was handed over as part of another), and that is durable. False: handle it now; what was held
   * in its chat has been handed over before it.
   */
  take(message: TelegramMessage, mayOpen: boolean): Promise<boolean>
  /** Continues with what an earlier process held. */
  resume(): Promise<void>
  /** Hands over everything; what can't be stays stored. */
  stop(): Promise<void>
}

export type HeldParts = {
  readonly memory: Pick<PlatformMemory, 'get' | 'set'>
  readonly log: Logger
  readonly self: Pick<TelegramSelf, 'id'>
  /** How long to wait for the next part. */
  readonly waitMs: number
  /** Resolves once the message is durable or ignored. */
  readonly handOver: (parts: readonly TelegramMessage[]) => Promise<void>
}

const KEY = 'held'
const LONGEST_RETRY_MS = 30_000

type Held = { readonly parts: TelegramMessage[]; timer?: NodeJS.Timeout; failures: number }

export const createHeldMessages = ({ memory, log, self, waitMs, handOver }: HeldParts): HeldMessages => {
  const joinedKey = (message: TelegramMessage): string => `joined:${deliveryIdOf(message, self)}`
  const held = new Map<string, Held>()
  let turn: Promise<unknown> = Promise.resolve()
  /** One at a time: a webhook may bring two parts at once. */
  const inTurn = async <T>(work: () => Promise<T>): Promise<T> => {
    const mine = turn.then(work)
    turn = mine.catch(() => undefined)
    return mine
  }
  const store = (): Promise<void> => memory.set(KEY, JSON.stringify([...held.values()].map(({ parts }) => parts)))
  /** If storing fails, the message isn't held either: Telegram sends it again. */
  const storeOr = (undo: () => unknown): Promise<void> =>
    store().catch((error: unknown) => {
      undo()
      throw error
    })

  const schedule = (writer: string, one: Held, ms: number): void => {
    clearTimeout(one.timer)
    one.timer = setTimeout(() => {
      void inTurn(async () => {
        if (held.get(writer) === one) await release(writer, one)
      }).catch((error: unknown) => {
        one.failures += 1
        log.error('a message could not be accepted; retrying', { error })
        schedule(writer, one, backoff(one.failures, { firstMs: waitMs, longestMs: LONGEST_RETRY_MS }))
      })
    }, ms)
  }
  const release = async (writer: string, one: Held): Promise<void> => {
    clearTimeout(one.timer)
    await handOver(one.parts)
    // A part that is delivered again later isn't a message of its own.
    for (const part of one.parts.slice(1)) await memory.set(joinedKey(part), '')
    held.delete(writer)
    await store()
  }
  const releaseChat = async (chat: number): Promise<void> => {
    for (const [writer, one] of held) if (one.parts[0]?.chat.id === chat) await release(writer, one)
  }

  return {
    take: (message, mayOpen) =>
      inTurn(async () => {
        const writer = writerOf(message)
        const open = held.get(writer)
        if (open?.parts.some(({ message_id: id }) => id === message.message_id) === true) return true
        if (open !== undefined && continues(open.parts, message)) {
          open.parts.push(message)
          await storeOr(() => open.parts.pop())
          schedule(writer, open, waitMs)
          return true
        }
        if ((await memory.get(joinedKey(message))) !== undefined) return true
        await releaseChat(message.chat.id)
        if (!mayOpen || !mayContinue(message)) return false
        const opened: Held = { parts: [message], failures: 0 }
        held.set(writer, opened)
        await storeOr(() => held.delete(writer))
        schedule(writer, opened, waitMs)
        return true
      }),
    resume: () =>
      inTurn(async () => {
        for (const parts of storedParts(await memory.get(KEY))) {
          const [first] = parts
          if (first === undefined || held.has(writerOf(first))) continue
          const one: Held = { parts, failures: 0 }
          held.set(writerOf(first), one)
          schedule(writerOf(first), one, waitMs)
        }
      }),
    stop: async () => {
      for (const { timer } of held.values()) clearTimeout(timer)
      await inTurn(async () => {
        for (const [writer, one] of held) await release(writer, one)
      }).catch((error: unknown) => log.warn('messages that waited for more text are handed over later', { error }))
      for (const { timer } of held.values()) clearTimeout(timer)
      held.clear()
    },
  }
}

const storedParts = (text: string | undefined): TelegramMessage[][] => {
  if (text === undefined) return []
  const read = messagesPayload.array().safeParse(jsonOf(text))
  return read.success ? read.data : []
}

const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

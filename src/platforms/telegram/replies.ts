import { DeliveryError, type OutgoingMessage } from '../../conversations/delivery.ts'
import { splitReply } from '../../conversations/split.ts'
import type { Clock } from '../../domain/clock.ts'
import type { Logger } from '../../process/log.ts'
import { isUnchanged, movedTo, type TelegramApi, toDeliveryError } from './client.ts'
import { isGroup, type Place, placeOf } from './conversation-id.ts'
import { inHtml } from './in-html.ts'

export type Replies = {
  readonly send: (message: OutgoingMessage) => Promise<void>
  readonly preview: (conversationId: string, text: string) => void
  /** Somebody spoke: what we say next belongs below that. */
  readonly heard: (conversationId: string) => void
  /** No more previews. */
  readonly quiet: () => void
}

export type RepliesParts = {
  readonly api: TelegramApi
  readonly clock: Clock
  readonly log: Logger
  /** In groups twice as long: Telegram takes 20 messages a minute there. */
  readonly previewEveryMs: number
}

/** Telegram takes 4,096 after rendering. */
export const LIMIT = 3_500
const MOST_CHATS = 2_000

type Shown = {
  readonly message: number
  readonly source: string
  /** Something was said below it. */
  passed: boolean
}

type Standing = {
  place: Place
  /** The message that grows while the agent speaks. */
  shown: Shown | undefined
  wanted: string | undefined
  timer: NodeJS.Timeout | undefined
  pausedUntil: number
  /** One thing at a time. */
  turn: Promise<unknown>
}

/**
 * Says things in chats. Telegram has nothing by which a message could be known again: one whose confirmation was lost is
 * sent again. Editing is what can be repeated, so an answer that was previewed arrives once.
 */
export const createReplies = ({ api, clock, log, previewEveryMs }: RepliesParts): Replies => {
  const standings = new Map<string, Standing>()

  const standingOf = (conversationId: string): Standing | undefined => {
    const found = standings.get(conversationId)
    if (found !== undefined) return found
    const place = placeOf(conversationId)
    if (place === undefined) return undefined
    const nothing = { shown: undefined, wanted: undefined, timer: undefined, pausedUntil: 0 }
    const made: Standing = { place, ...nothing, turn: Promise.resolve() }
    standings.set(conversationId, made)
    if (standings.size > MOST_CHATS) forgetOldest(standings)
    return made
  }

  const post = async (standing: Standing, text: string): Promise<number> => {
    const once = async (): Promise<number> => {
      const { chat, thread } = standing.place
      const sent = await inHtml(text, log, (words, how) =>
        api.sendMessage(chat, words, {
          ...plainly,
          ...how,
          ...(thread !== undefined && { message_thread_id: thread }),
        }),
      )
      return sent.message_id
    }
    try {
      return await once()
    } catch (error) {
      const chat = movedTo(error)
      if (chat === undefined) throw error
      standing.place = { ...standing.place, chat }
      return once()
    }
  }

  const edit = async ({ place }: Standing, message: number, text: string): Promise<void> => {
    try {
      await inHtml(text, log, (words, how) => api.editMessageText(place.chat, message, words, { ...plainly, ...how }))
    } catch (error) {
      if (!isUnchanged(error)) throw error
    }
  }

  /** That a preview stays is no reason to fail. */
  const takeAway = async ({ place }: Standing, message: number): Promise<void> => {
    await api.deleteMessage(place.chat, message).catch((error: unknown) => {
      log.debug('a preview could not be taken away', { error })
    })
  }

  const say = async (standing: Standing, { role, part, text: given }: OutgoingMessage): Promise<void> => {
    const text = given.trimEnd()
    const isAnswer = role === 'agent' && part === 1
    if (isAnswer) stopPreview(standing)
    // Telegram takes no empty message, and there is nothing to see in one.
    if (text === '') return
    const { shown } = standing
    if (isAnswer && (await overPreview(standing, text))) return
    await post(standing, text)
    if (shown !== undefined && isAnswer) {
      standing.shown = undefined
      await takeAway(standing, shown.message)
    } else if (shown !== undefined) shown.passed = true
  }

  /** The preview becomes the answer, unless something was said below it: then the answer belongs further down. */
  const overPreview = async (standing: Standing, text: string): Promise<boolean> => {
    const { shown } = standing
    if (shown === undefined || shown.passed) return false
    try {
      await edit(standing, shown.message, text)
      standing.shown = undefined
      return true
    } catch (error) {
      if (toDeliveryError(error).kind === 'unreachable') throw error
      return false
    }
  }

  const show = async (standing: Standing): Promise<void> => {
    const { wanted, shown } = standing
    if (wanted === undefined || clock() < standing.pausedUntil) return
    // Each preview of one run goes on from the one before: another is another run's.
    const goesOn = shown !== undefined && !shown.passed && wanted.startsWith(shown.source)
    if (goesOn && shown.source === wanted) return
    const text = `${(splitReply(wanted, LIMIT - 10).at(-1) ?? '').trimEnd()}\n…`
    if (goesOn) {
      await edit(standing, shown.message, text)
      standing.shown = { ...shown, source: wanted }
      return
    }
    if (shown !== undefined) await takeAway(standing, shown.message)
    standing.shown = undefined
    standing.shown = { message: await post(standing, text), source: wanted, passed: false }
  }

  const showSoon = (standing: Standing): void => {
    const pause = previewEveryMs * (isGroup(standing.place) ? 2 : 1)
    standing.timer = setTimeout(() => {
      standing.timer = undefined
      void inTurn(standing, () => show(standing)).catch((error: unknown) => {
        // A flood wait counts for the whole chat: what is tried meanwhile makes it longer for the answer.
        standing.pausedUntil = clock() + (toDeliveryError(error).retryAfterMs ?? pause)
        log.debug('a preview could not be shown', { error })
      })
    }, pause).unref()
  }

  return {
    send: async (message) => {
      const standing = standingOf(message.conversationId)
      if (standing === undefined) {
        throw new DeliveryError('refused', `${message.conversationId.slice(0, 80)} is no chat of Telegram's`)
      }
      await inTurn(standing, () => say(standing, message)).catch((error: unknown) => {
        throw toDeliveryError(error)
      })
    },
    preview: (conversationId, text) => {
      const standing = text.trim() === '' ? undefined : standingOf(conversationId)
      if (standing === undefined) return
      standing.wanted = text
      if (standing.timer === undefined) showSoon(standing)
    },
    heard: (conversationId) => {
      const shown = standings.get(conversationId)?.shown
      if (shown !== undefined) shown.passed = true
    },
    quiet: () => {
      for (const standing of standings.values()) stopPreview(standing)
    },
  }
}

/** Nothing unfolds below what an agent writes. */
const plainly = { link_preview_options: { is_disabled: true } } as const

const stopPreview = (standing: Standing): void => {
  clearTimeout(standing.timer)
  standing.timer = undefined
  standing.wanted = undefined
}

const inTurn = async <T>(standing: Standing, work: () => Promise<T>): Promise<T> => {
  const mine = standing.turn.then(work)
  standing.turn = mine.catch(() => undefined)
  return mine
}

/** Chats that nothing is going on in. */
const forgetOldest = (standings: Map<string, Standing>): void => {
  for (const [id, { timer, shown, wanted }] of standings) {
    if (timer !== undefined || shown !== undefined || wanted !== undefined) continue
    standings.delete(id)
    return
  }
}

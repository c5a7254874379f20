import { DeliveryError, type OutgoingMessage } from '../../conversations/delivery.ts'
import { splitReply } from '../../conversations/split.ts'
import type { Clock } from '../../domain/clock.ts'
import type { Logger } from '../../process/log.ts'
import { isUnclear, refusalOf, type SlackClient, toDeliveryError } from './client.ts'
import type { Heard } from './incoming.ts'
import { type Place, threadOf } from './parse.ts'
import { toMrkdwn } from './render.ts'
import { readThread } from './thread.ts'

export type Replies = {
  readonly send: (message: OutgoingMessage) => Promise<void>
  readonly preview: (conversationId: string, text: string) => void
  /** Somebody spoke. A thread that begins with it cannot have an answer of ours yet. */
  readonly heard: (conversationId: string, thread: Heard) => void
  /** No more previews. */
  readonly quiet: () => void
}

/**
 * Slack shows 4,000 characters well and refuses an edit of more than 4,000 bytes (`msg_too_long`), counted with `&`,
 * `<` and `>` escaped; umlauts and code need the rest.
 */
export const LIMIT = 3_000
const EDIT_BYTES = 4_000

/** What we write beside a message, so that it is known again. */
const REPLY = 'coppice_reply'
const PREVIEW = 'coppice_preview'

/** An answer that comes within this time needs no preview. */
const FIRST_MS = 1_000
/** chat.update may be called 50 times a minute, by all conversations together. */
const BETWEEN_MS = 1_500
const MOST_THREADS = 2_000
const MOST_KNOWN = 500

type Standing = {
  /** Of a channel itself the thread that it was last spoken of in. */
  thread: Place
  /** The replies that are there already; undefined: it has to be looked. */
  known: Set<string> | undefined
  /** The preview that stands in the thread. */
  shown: { readonly ts: string; readonly source: string; readonly text: string; readonly heard: number } | undefined
  /** What the preview should say. */
  wanted: string | undefined
  timer: NodeJS.Timeout | undefined
  /** How often somebody spoke. */
  heard: number
  /** One thing at a time. */
  turn: Promise<unknown>
}

export type RepliesParts = { readonly client: SlackClient; readonly clock: Clock; readonly log: Logger }

/** Says things in threads, each once: an answer that was lost on the way is looked for before it is sent again. */
export const createReplies = ({ client, clock, log }: RepliesParts): Replies => {
  const standings = new Map<string, Standing>()
  let pausedUntil = 0

  const standingOf = (conversationId: string): Standing | undefined => {
    const found = standings.get(conversationId)
    if (found !== undefined) return found
    const thread = threadOf(conversationId)
    if (thread === undefined) return undefined
    const turn = Promise.resolve()
    const made: Standing = {
      thread,
      known: undefined,
      shown: undefined,
      wanted: undefined,
      timer: undefined,
      heard: 0,
      turn,
    }
    standings.set(conversationId, made)
    if (standings.size > MOST_THREADS) forgetOldest(standings)
    return made
  }

  const post = async (standing: Standing, text: string, type: string, id: string): Promise<string> => {
    const { channel, threadTs } = standing.thread
    try {
      const message = {
        channel,
        ...(threadTs !== undefined && { thread_ts: threadTs }),
        text,
        unfurl_links: false,
        unfurl_media: false,
        metadata: { event_type: type, event_payload: { id } },
      }
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- Slack's method, not a window's
      const posted = await client.chat.postMessage(message)
      return posted.ts ?? ''
    } catch (error) {
      if (isUnclear(error)) standing.known = undefined
      throw error
    }
  }

  const edit = async ({ thread }: Standing, ts: string, text: string, type: string, id: string): Promise<void> => {
    const metadata = { event_type: type, event_payload: { id } }
    // Unlike a new message, an edited one is parsed as if a person had typed it, unless that is switched off.
    await client.chat.update({ channel: thread.channel, ts, text, metadata, parse: 'none', link_names: false })
  }

  /** What is not needed any more. That it stays for now is no reason to fail: the next look takes it away. */
  const takeAway = async (standing: Standing, ts: string): Promise<void> => {
    await client.chat.delete({ channel: standing.thread.channel, ts }).catch((error: unknown) => {
      if (refusalOf(error) === undefined) standing.known = undefined
      log.debug('a preview could not be taken away', { error })
    })
  }

  /** What of ours is in the thread. Previews of an earlier life are taken away. */
  const look = async (standing: Standing): Promise<Set<string>> => {
    const known = new Set<string>()
    const { channel, threadTs } = standing.thread
    // Spoken of in an earlier life: nobody knows where, so the answer stands in the channel.
    if (threadTs === undefined) return known
    try {
      for (const { ts, mark } of await readThread(client, { channel, threadTs })) {
        if (mark?.type === REPLY) known.add(mark.id)
        else if (mark?.type === PREVIEW && ts !== standing.shown?.ts) await takeAway(standing, ts)
      }
    } catch (error) {
      // Without the right to read we cannot tell, and an answer twice is better than none.
      if (toDeliveryError(error).kind === 'unreachable') throw error
      log.warn('earlier replies could not be looked for', { error })
    }
    return known
  }

  const say = async (standing: Standing, message: OutgoingMessage): Promise<void> => {
    const { id, role, part } = message
    const isAnswer = role === 'agent' && part === 1
    if (isAnswer) stopPreview(standing)
    const known = (standing.known ??= await look(standing))
    if (known.has(id)) return
    const text = toMrkdwn(message.text.trimEnd())
    if (!(isAnswer && (await overPreview(standing, id, text)))) {
      await post(standing, text, REPLY, id)
      if (isAnswer && standing.shown !== undefined) await takeAway(standing, standing.shown.ts)
    }
    if (isAnswer) standing.shown = undefined
    known.add(id)
    if (known.size > MOST_KNOWN) known.delete(known.values().next().value ?? '')
  }

  /** The preview becomes the answer, unless somebody spoke below it since: then the answer belongs further down. */
  const overPreview = async (standing: Standing, id: string, text: string): Promise<boolean> => {
    const { shown, heard } = standing
    if (shown === undefined || shown.heard !== heard || Buffer.byteLength(text) > EDIT_BYTES) return false
    try {
      await edit(standing, shown.ts, text, REPLY, id)
      return true
    } catch (error) {
      if (toDeliveryError(error).kind === 'unreachable') throw error
      return false
    }
  }

  const show = async (standing: Standing): Promise<void> => {
    const { wanted, shown } = standing
    if (wanted === undefined || clock() < pausedUntil) return
    const text = `${toMrkdwn(splitReply(wanted, LIMIT)[0] ?? '')} …`
    if (text === shown?.text || Buffer.byteLength(text) > EDIT_BYTES) return
    standing.known ??= await look(standing)
    // Each preview of one run goes on from the one before: this is another run's.
    const isSame = shown !== undefined && wanted.startsWith(shown.source)
    if (shown !== undefined && !isSame) await takeAway(standing, shown.ts)
    if (isSame) await edit(standing, shown.ts, text, PREVIEW, shown.ts)
    const ts = isSame ? shown.ts : await post(standing, text, PREVIEW, 'preview')
    standing.shown = { ts, source: wanted, text, heard: isSame ? shown.heard : standing.heard }
  }

  const showSoon = (standing: Standing): void => {
    const streaming = [...standings.values()].filter(({ wanted }) => wanted !== undefined).length
    const pause = standing.shown === undefined ? FIRST_MS : BETWEEN_MS * Math.max(1, streaming)
    standing.timer = setTimeout(() => {
      standing.timer = undefined
      void inTurn(standing, () => show(standing)).catch((error: unknown) => {
        pausedUntil = clock() + (toDeliveryError(error).retryAfterMs ?? BETWEEN_MS)
        log.debug('a preview could not be shown', { error })
      })
    }, pause).unref()
  }

  return {
    send: async (message) => {
      const standing = standingOf(message.conversationId)
      if (standing === undefined) {
        throw new DeliveryError('refused', `${message.conversationId.slice(0, 80)} is no thread of Slack's`)
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
    heard: (conversationId, { threadTs, isNew }) => {
      const standing = standingOf(conversationId)
      if (standing === undefined) return
      standing.heard += 1
      if (standing.thread.threadTs !== threadTs) standing.thread = { ...standing.thread, threadTs }
      if (isNew) standing.known ??= new Set()
    },
    quiet: () => {
      for (const standing of standings.values()) stopPreview(standing)
    },
  }
}

const stopPreview = (standing: Standing): void => {
  clearTimeout(standing.timer)
  standing.timer = undefined
  standing.wanted = undefined
}

const inTurn = async <T>(standing: Standing, work: () => Promise<T>): Promise<T> => {
  const before = standing.turn
  const mine = before.then(work)
  standing.turn = mine.catch(() => undefined)
  return mine
}

/** Threads that nothing is going on in; what was there is looked up again when they wake. */
const forgetOldest = (standings: Map<string, Standing>): void => {
  for (const [id, { timer, shown, wanted }] of standings) {
    if (timer !== undefined || shown !== undefined || wanted !== undefined) continue
    standings.delete(id)
    return
  }
}

import type { Clock } from '../../domain/clock.ts'
import { backoff } from '../../domain/backoff.ts'
import type { Logger } from '../../process/log.ts'
import { createLastSeen, MAX_MISSED_MS, missedSince } from '../catch-up.ts'
import type { PlatformMemory } from '../memory.ts'
import { isRefusal, refusalOf, type SlackClient } from './client.ts'
import { createHistory, type Pause } from './history.ts'
import type { Incoming } from './incoming.ts'
import { parseMessage, type SlackSelf, threadOf } from './message/parse.ts'
import { type Fields, isTimestamp } from './message/record.ts'

export type CatchUpParts = {
  readonly client: SlackClient
  readonly memory: PlatformMemory
  readonly clock: Clock
  readonly log: Logger
  readonly pause: Pause
  /** The function that handles live messages. */
  readonly handle: Incoming
}

export type CatchUp = {
  /** Reads the messages that were missed. Retries until it succeeds; never runs twice at once, but again if asked. */
  run(self: SlackSelf, signal: AbortSignal): Promise<void>
  /** A live message was accepted. */
  onAccepted(ts: string): Promise<void>
}

const DAY_MS = 24 * 60 * 60 * 1000
/** Slack's own retries go on for five minutes, so an earlier message may arrive after a later one. */
const OVERLAP_MS = 600_000
const MAX_THREAD_AGE_MS = 30 * DAY_MS
const MAX_CHANNELS = 200
const MAX_THREADS = 100
/** Of people who are allowed, and without those that are known. */
const MAX_MESSAGES = 200

const FIRST_PAUSE_MS = 30_000
const MAX_PAUSE_MS = 600_000

/** One mark for the whole workspace, so that channels where the bot wasn't used before are read too. */
const PLACE = 'workspace'

/** Slack retries an event for five minutes and then forgets it, so after a longer outage we have to ask. */
export const createCatchUp = (parts: CatchUpParts): CatchUp => {
  const { client, memory, clock, log, pause, handle } = parts
  const lastSeen = createLastSeen(memory, {
    isLater: (mark, than) => Number(mark) > Number(than),
    msOf: (mark) => Number(mark) * 1000,
  })
  let running: Promise<void> | undefined
  /** The connection was lost again: what it missed may be where was already looked. */
  let again = false

  const attempt = async (self: SlackSelf, signal: AbortSignal): Promise<void> => {
    const startedAt = clock()
    const since = await lastSeen.get(PLACE)
    if (since !== undefined) await readSince(Number(since) * 1000, startedAt, self, signal)
    signal.throwIfAborted()
    await lastSeen.advance(PLACE, timestampOf(startedAt))
  }

  const readSince = async (since: number, startedAt: number, self: SlackSelf, signal: AbortSignal): Promise<void> => {
    const oldest = timestampOf(missedSince(since, startedAt, OVERLAP_MS))
    const cut = new Set<string>(startedAt - since > MAX_MISSED_MS ? ['older than three days'] : [])
    const history = createHistory({ client, pause, signal, onCut: (what) => cut.add(what) })
    let handled = 0
    const handleAll = async (channel: string, messages: readonly Fields[]): Promise<void> => {
      for (const message of messages) {
        const parsed = parseMessage(channel, message, self)
        if ('ignored' in parsed) continue
        if (handled === MAX_MESSAGES) return void cut.add('too many messages')
        signal.throwIfAborted()
        if (await handle(parsed, self)) handled += 1
      }
    }

    const known = (await memory.recentConversations(MAX_THREADS))
      .filter(({ lastActivityAt }) => startedAt - lastActivityAt < MAX_THREAD_AGE_MS)
      .map(({ conversationId }) => conversationId)
    const threads = new Set(known.filter((id) => threadOf(id)?.threadTs !== undefined))
    const channels = await channelsOf(() => history.channels(), known)
    if (channels.length > MAX_CHANNELS) cut.add('too many channels')
    for (const channel of channels.slice(0, MAX_CHANNELS)) {
      const messages = await orNothing(() => history.messages(channel, oldest), channel)
      await handleAll(channel, messages)
      // Replies aren't part of a channel's history.
      for (const { ts, latest_reply: latest } of messages) {
        if (isTimestamp(ts) && isTimestamp(latest) && Number(latest) > Number(oldest)) threads.add(`${channel}:${ts}`)
      }
    }
    if (threads.size > MAX_THREADS) cut.add('too many threads')
    for (const id of [...threads].slice(0, MAX_THREADS)) {
      const { channel, threadTs } = threadOf(id) ?? {}
      if (channel === undefined || threadTs === undefined) continue
      await handleAll(channel, await orNothing(() => history.replies({ channel, threadTs }, oldest), channel))
    }
    log.info('caught up with Slack', { channels: channels.length, threads: threads.size, messages: handled })
    if (cut.size > 0) log.warn('some Slack messages were not caught up on', { why: [...cut], messages: handled })
  }

  /** Without the scopes to list the channels: those in which we have conversations. */
  const channelsOf = async (
    read: () => Promise<readonly string[]>,
    known: readonly string[],
  ): Promise<readonly string[]> => {
    try {
      return await read()
    } catch (error) {
      if (!isRefusal(error)) throw error
      log.warn('the channels of the bot could not be listed', { refusal: refusalOf(error) })
      return [...new Set(known.flatMap((id) => threadOf(id)?.channel ?? []))]
    }
  }

  /** A channel that we may not read, or a thread that was deleted. */
  const orNothing = async (read: () => Promise<readonly Fields[]>, channel: string): Promise<readonly Fields[]> => {
    try {
      return await read()
    } catch (error) {
      if (!isRefusal(error)) throw error
      log.warn('missed messages could not be read', { channel, refusal: refusalOf(error) })
      return []
    }
  }

  const untilDone = async (self: SlackSelf, signal: AbortSignal): Promise<void> => {
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        do {
          again = false
          await attempt(self, signal)
        } while (again)
        return
      } catch (error) {
        if (signal.aborted) return
        log.warn('catching up with Slack failed; it will be tried again', { error })
        await pause(backoff(failures, { firstMs: FIRST_PAUSE_MS, longestMs: MAX_PAUSE_MS }), signal)
      }
    }
  }

  return {
    run: (self, signal) => {
      again = running !== undefined
      return (running ??= untilDone(self, signal).finally(() => {
        running = undefined
      }))
    },
    // While something older is still missing, the mark stays where it is.
    onAccepted: async (ts) => {
      if (running === undefined) await lastSeen.advanceLive(PLACE, ts)
    },
  }
}

const timestampOf = (at: number): string => (at / 1000).toFixed(6)

/*
 * Slack. In: events, buttons and slash commands from a socket or a webhook. Out: authorised messages for the inbox;
 * replies through `reply-port.ts`.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { isChatCommand } from '../../conversations/answer-command.ts'
import { AppError, isAppError } from '../../domain/errors.ts'
import type { Platform, PlatformInbox, PlatformStatus, WebhookRequest } from '../platform.ts'
import type { PlatformParts } from '../descriptor.ts'
import { createReplies } from '../replies/engine.ts'
import { tellStranger } from '../stranger-notice.ts'
import { acknowledge } from './acknowledge.ts'
import { createCatchUp } from './catch-up.ts'
import { clientOptions, createSlackClient } from './client.ts'
import type { SlackAnswer, SlackDelivery } from './delivery.ts'
import { createEvents, type Events } from './events.ts'
import { createFetchAttachment } from './files.ts'
import { identify, refused } from './identify.ts'
import { createIncoming } from './incoming.ts'
import { createInteractions } from './interactions.ts'
import { createLatestThread } from './latest-thread.ts'
import { authorOf, parseEvent, type SlackMessage, type SlackSelf } from './message/parse.ts'
import { escapeMrkdwn } from './render.ts'
import { LIMIT, slackReplies } from './reply-port.ts'
import { type SlackSettings, usableSettings } from './settings.ts'
import { createSocket } from './socket.ts'
import { answerWebhook } from './webhook.ts'

/** Delay between attempts to identify ourselves while Slack is unreachable. */
const RETRY_MS = 10_000

/** A shorter interruption is covered by Slack's own retries. */
const GAP_MS = 60_000

/** Slack, over Socket Mode and signed HTTP. Throws if a setting is missing, before connecting. */
export const createSlackPlatform = async (
  settings: SlackSettings,
  { log: given, clock, memory }: Pick<PlatformParts, 'log' | 'clock' | 'memory'>,
): Promise<Platform> => {
  const { botToken, appToken, signingSecret, allowedUsers, apiUrl } = usableSettings(settings)
  const log = given.child({ platform: 'slack' })
  const options = clientOptions(log, apiUrl)
  const client = createSlackClient(botToken, log, apiUrl)
  let status: PlatformStatus = { state: 'disconnected', since: clock(), lastMessageAt: undefined, lastError: undefined }
  const report = (problem: string): void => {
    status = {
      ...status,
      lastError: `${problem}; check the bot token and its scopes with coppice platforms setup slack`,
    }
  }
  const replies = createReplies(slackReplies(client, report), { clock, log })
  const fetchAttachment = createFetchAttachment({ client, botToken, apiUrl })
  const latestThread = createLatestThread(memory)
  let inbox: PlatformInbox | undefined
  let self: SlackSelf | undefined
  let events: Events | undefined
  let stopping = new AbortController()
  let trying: Promise<void> | undefined
  let catchingUp: Promise<void> | undefined
  /** When messages stopped arriving; undefined: they do. */
  let lostAt: number | undefined = -Infinity
  const become = (state: PlatformStatus['state'], problem?: string): void => {
    if (state !== 'connected' && status.state === 'connected') lostAt = clock()
    const since = state === status.state ? status.since : clock()
    status = { ...status, state, since, lastError: problem ?? status.lastError }
    if (state !== 'connected' || self === undefined || lostAt === undefined) return
    const awayMs = clock() - lostAt
    // Less than nothing: the clock was set back, and how long it took isn't known.
    if (awayMs > GAP_MS || awayMs < 0) catchingUp = catchUp.run(self, stopping.signal)
    lostAt = undefined
  }
  const accept: PlatformInbox['accept'] = async (message, by) => {
    if (inbox === undefined) throw notNow()
    const accepted = await inbox.accept(message, by)
    status = { ...status, lastMessageAt: clock() }
    return accepted
  }
  const whisper = ({ channel, threadTs, user, foreignTeam }: Whispered): void =>
    void tellStranger({ memory, log }, authorOf({ user, foreignTeam }), (text) =>
      client.chat.postEphemeral({
        channel,
        user,
        text: escapeMrkdwn(text),
        ...(threadTs !== undefined && { thread_ts: threadTs }),
      }),
    )
  const incoming = createIncoming({
    client,
    allowedUsers,
    log,
    latestThread,
    fetchAttachment,
    accept,
    onStranger: (message) =>
      whisper({ ...message, threadTs: message.ts === message.threadTs ? undefined : message.threadTs }),
    onAccepted: async (message, { outcome }, at) => {
      if (outcome !== 'accepted') return
      replies.onUserMessage(at.conversationId, at)
      void acknowledge(client, message, log)
      // It is stored already: a failure here costs no message.
      await Promise.all([
        // A thread that began with a command has nothing to stop.
        at.isNew === true && isChatCommand(message.text)
          ? undefined
          : latestThread.set(at.conversationId, message.channel, message.user),
        catchUp.onAccepted(message.ts),
      ]).catch((error: unknown) => log.warn('what Slack needs after a restart could not be stored', { error }))
    },
  })
  const interactions = createInteractions({ client, allowedUsers, log, latestThread, accept, onStranger: whisper })
  const catchUp = createCatchUp({ client, memory, clock, log, pause, handle: incoming })
  const onDelivery = async ({ kind, body, retry }: SlackDelivery): Promise<SlackAnswer> => {
    if (inbox === undefined || events === undefined || self === undefined) throw notNow()
    if (retry !== undefined) log.debug('Slack redelivered an event', { retry })
    switch (kind) {
      case 'event':
        return events.process(body, retry).then(() => undefined)
      case 'interaction':
        return interactions.press(body, self).then(() => undefined)
      case 'command':
        return interactions.command(body, self)
    }
  }
  const socket =
    appToken === undefined ? undefined : createSocket({ appToken, options, log, onDelivery, onState: become })

  const connect = async (): Promise<void> => {
    const us = await identify(client)
    self = us
    events = createEvents({
      self: us,
      botToken,
      options,
      log,
      onMessage: async (body) => void (await incoming(parseEvent(body, us), us)),
    })
    if (socket === undefined) return become('connected')
    await socket.start().catch((error: unknown) => {
      throw refused('app-level token', error)
    })
  }
  /** Retries while Slack is unreachable. */
  const keepTrying = async (signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      await delay(RETRY_MS, undefined, { signal, ref: false }).catch(() => undefined)
      if (signal.aborted) return
      try {
        return await connect()
      } catch (error) {
        become(isAppError(error) ? 'disconnected' : 'connecting', messageOf(error))
        log.warn('Slack is not connected', { error })
        if (isAppError(error)) return
      }
    }
  }

  return {
    platform: 'slack',
    limit: LIMIT,
    send: replies.send,
    preview: replies.preview,
    fetchAttachment,
    status: () => status,
    start: async (to) => {
      inbox = to
      stopping = new AbortController()
      become('connecting')
      try {
        await connect()
      } catch (error) {
        become(isAppError(error) ? 'disconnected' : 'connecting', messageOf(error))
        if (!isAppError(error)) {
          log.warn('Slack is not connected yet', { error })
          trying = keepTrying(stopping.signal)
          return
        }
        inbox = undefined
        throw error
      }
    },
    stop: async () => {
      stopping.abort()
      await trying
      await socket?.stop()
      await catchingUp
      inbox = undefined
      replies.stopPreviews()
      become('disconnected')
    },
    ...(signingSecret !== undefined && {
      webhook: (request: WebhookRequest) => answerWebhook(request, signingSecret, clock(), onDelivery, log.warn),
    }),
  }
}

type Whispered = Pick<SlackMessage, 'channel' | 'user' | 'foreignTeam'> & { readonly threadTs: string | undefined }

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  delay(ms, undefined, { signal, ref: false }).catch(() => undefined)

const notNow = (): AppError => new AppError('busy', 'Coppice is not accepting messages right now')

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

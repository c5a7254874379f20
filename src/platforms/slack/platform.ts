/*
 * Slack. In: events from a socket or a webhook. Out: authorised messages for the inbox; replies through `reply-
 * port.ts`.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { AppError, isAppError } from '../../domain/errors.ts'
import type { Platform, PlatformInbox, PlatformStatus, WebhookRequest } from '../platform.ts'
import type { PlatformParts } from '../descriptor.ts'
import { clientOptions, createSlackClient } from './client.ts'
import { createEvents, type Events } from './events.ts'
import { identify, refused } from './identify.ts'
import { createIncoming } from './incoming.ts'
import { createReplies } from '../replies/engine.ts'
import { LIMIT, slackReplies } from './reply-port.ts'
import { type SlackSettings, usableSettings } from './settings.ts'
import { createSocket } from './socket.ts'
import { answerWebhook } from './webhook.ts'

/** Delay between attempts to identify ourselves while Slack is unreachable. */
const RETRY_MS = 10_000

/** Slack, over Socket Mode and signed HTTP. Throws if a setting is missing, before connecting. */
export const createSlackPlatform = async (
  settings: SlackSettings,
  { log: given, clock }: Pick<PlatformParts, 'log' | 'clock'>,
): Promise<Platform> => {
  const { botToken, appToken, signingSecret, allowedUsers, apiUrl } = usableSettings(settings)
  const log = given.child({ platform: 'slack' })
  const options = clientOptions(log, apiUrl)
  const client = createSlackClient(botToken, log, apiUrl)
  const replies = createReplies(slackReplies(client), { clock, log })
  let inbox: PlatformInbox | undefined
  let events: Events | undefined
  let stopping = new AbortController()
  let trying: Promise<void> | undefined
  let status: PlatformStatus = { state: 'disconnected', since: clock(), lastMessageAt: undefined, lastError: undefined }
  const become = (state: PlatformStatus['state'], problem?: string): void => {
    const since = state === status.state ? status.since : clock()
    status = { ...status, state, since, lastError: problem ?? status.lastError }
  }
  const incoming = createIncoming({
    client,
    allowedUsers,
    log,
    accept: async (message, by) => {
      if (inbox === undefined) throw notNow()
      return inbox.accept(message, by)
    },
    onAccepted: (conversationId, { outcome }, message) => {
      status = { ...status, lastMessageAt: clock() }
      if (outcome === 'accepted') replies.onUserMessage(conversationId, message)
    },
  })
  const onEvent = async (body: unknown, retry: number | undefined): Promise<void> => {
    if (inbox === undefined || events === undefined) throw notNow()
    if (retry !== undefined) log.debug('Slack redelivered an event', { retry })
    await events.process(body, retry)
  }
  const socket = appToken === undefined ? undefined : createSocket({ appToken, options, log, onEvent, onState: become })

  const connect = async (): Promise<void> => {
    const self = await identify(client)
    events = createEvents({ self, botToken, options, log, onMessage: (body) => incoming(body, self) })
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
      inbox = undefined
      replies.stopPreviews()
      become('disconnected')
    },
    ...(signingSecret !== undefined && {
      webhook: (request: WebhookRequest) => answerWebhook(request, signingSecret, clock(), onEvent, log.warn),
    }),
  }
}

const notNow = (): AppError => new AppError('busy', 'Coppice is not accepting messages right now')

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/*
 * Telegram. In: updates from polling or a webhook. Out: authorised messages for the inbox; replies through `reply-
 * port.ts`.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { chatCommands } from '../../commands/chat-table.ts'
import { AppError, isAppError } from '../../domain/errors.ts'
import { createButtonData } from '../button-data.ts'
import type { Platform, PlatformInbox, PlatformStatus, WebhookRequest } from '../platform.ts'
import type { PlatformParts } from '../descriptor.ts'
import { allowedUpdates } from './allowed-updates.ts'
import { createTelegramApi, refusalOf, signalFor, toDeliveryError } from './client.ts'
import { menuCommands } from './commands.ts'
import { fetchTelegramFile } from './files.ts'
import { identify } from './identify.ts'
import { LONG_POLL_SECONDS, poll } from './polling.ts'
import { createReplies } from '../replies/engine.ts'
import { createReceiver, type Receiver } from './receiver.ts'
import { LIMIT, MAX_BUTTON_BYTES, telegramReplies } from './reply-port.ts'
import { invalid, type TelegramSettings, usableSettings } from './settings.ts'
import { answerWebhook } from './webhook.ts'

/** Delays; tests use shorter ones. */
export type Pace = {
  readonly requestTimeoutMs: number
  readonly previewEveryMs: number
  /** After a failure; doubles each time. */
  readonly pauseMs: number
  /** Delay between attempts to identify ourselves while Telegram is unreachable. */
  readonly retryMs: number
  /** How long to wait for the rest of a long message or an album. */
  readonly joinMs: number
}

const defaultPace: Pace = {
  requestTimeoutMs: 10_000,
  previewEveryMs: 2_000,
  pauseMs: 1_000,
  retryMs: 10_000,
  joinMs: 1_500,
}

/** Telegram, by long polling or webhook. Throws if a setting is missing, before connecting. */
export const createTelegramPlatform = async (
  settings: TelegramSettings,
  { log: given, clock, memory }: Pick<PlatformParts, 'log' | 'clock' | 'memory'>,
  overrides: Partial<Pace> = {},
): Promise<Platform> => {
  const pace = { ...defaultPace, ...overrides }
  const { botToken, allowedUsers, apiUrl, webhook } = usableSettings(settings)
  const log = given.child({ platform: 'telegram' })
  const api = createTelegramApi(botToken, apiUrl, pace.requestTimeoutMs)
  const waitingApi = createTelegramApi(botToken, apiUrl, LONG_POLL_SECONDS * 1000 + pace.requestTimeoutMs)
  const buttons = createButtonData(memory, MAX_BUTTON_BYTES)
  const port = telegramReplies({ api, log, buttons, previewEveryMs: pace.previewEveryMs })
  const replies = createReplies(port, { clock, log })
  const menu = menuCommands(chatCommands)
  let inbox: PlatformInbox | undefined
  let receiver: Receiver | undefined
  let stopping = new AbortController()
  let working: Promise<void> | undefined
  let status: PlatformStatus = { state: 'disconnected', since: clock(), lastMessageAt: undefined, lastError: undefined }
  const become = (state: PlatformStatus['state'], problem?: string): void => {
    const since = state === status.state ? status.since : clock()
    status = { ...status, state, since, lastError: problem ?? status.lastError }
  }

  /** Resolves once the message is durable or ignored. */
  const onUpdate = async (update: unknown): Promise<void> => {
    if (receiver === undefined) throw notNow()
    await receiver.update(update)
  }
  const listen = async (to: PlatformInbox, signal: AbortSignal): Promise<void> => {
    const commands = new Set(menu.map(({ command }) => command))
    const self = { ...(await identify(api, signal)), commands }
    receiver = createReceiver({
      api,
      inbox: to,
      memory,
      buttons,
      log,
      clock,
      allowed: allowedUsers,
      self,
      joinMs: pace.joinMs,
      onAccepted: (conversationId, kind) => {
        status = { ...status, lastMessageAt: clock() }
        if (kind === 'message') replies.onUserMessage(conversationId)
      },
    })
    await receiver.resume()
  }

  const connect = async (signal: AbortSignal): Promise<void> => {
    if (inbox === undefined) throw notNow()
    await listen(inbox, signal)
    if (webhook === undefined) {
      await api.deleteWebhook({}, signalFor(signal))
      become('connecting')
    } else {
      const options = { secret_token: webhook.secret, allowed_updates: [...allowedUpdates] }
      await api.setWebhook(webhook.url, options, signalFor(signal)).catch((error: unknown) => {
        const refusal = refusalOf(error)
        if (refusal?.code !== 400) throw error
        throw invalid(
          `Telegram rejected the webhook: ${refusal.description}`,
          'set an https URL that Telegram can reach',
          error,
        )
      })
      become('connected')
    }
    // Not worth waiting for.
    void api.setMyCommands(menu, {}, signalFor(signal)).catch((error: unknown) => {
      log.debug('the commands could not be registered with Telegram', { error: toDeliveryError(error) })
    })
  }
  const work = async (signal: AbortSignal): Promise<void> => {
    if (webhook !== undefined) return
    await poll({ api: waitingApi, log, clock, signal, pauseMs: pace.pauseMs, onUpdate, onState: become })
  }
  /** Retries while Telegram is unreachable. */
  const keepTrying = async (signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      await delay(pace.retryMs, undefined, { signal, ref: false }).catch(() => undefined)
      if (signal.aborted) return
      try {
        await connect(signal)
        return await work(signal)
      } catch (error) {
        if (signal.aborted) return
        noteFailure(error)
        if (isAppError(error)) return
      }
    }
  }
  const noteFailure = (error: unknown): void => {
    const failure = isAppError(error) ? error : toDeliveryError(error)
    become(isAppError(error) ? 'disconnected' : 'connecting', failure.message)
    log.warn('Telegram is not connected', { error: failure })
  }

  return {
    platform: 'telegram',
    limit: LIMIT,
    send: replies.send,
    preview: replies.preview,
    fetchAttachment: (attachment, signal) => fetchTelegramFile({ api, botToken, apiUrl }, attachment, signal),
    status: () => status,
    start: async (to) => {
      inbox = to
      stopping = new AbortController()
      const { signal } = stopping
      become('connecting')
      try {
        await connect(signal)
        working = work(signal)
      } catch (error) {
        noteFailure(error)
        if (isAppError(error)) {
          inbox = undefined
          throw error
        }
        working = keepTrying(signal)
      }
    },
    stop: async () => {
      stopping.abort()
      await working
      await receiver?.stop()
      inbox = undefined
      receiver = undefined
      replies.stopPreviews()
      become('disconnected')
    },
    ...(webhook !== undefined && {
      webhook: (request: WebhookRequest) => answerWebhook(request, webhook.secret, onUpdate, log.warn),
    }),
  }
}

const notNow = (): AppError => new AppError('busy', 'Coppice is not accepting messages right now')

/*
 * Telegram. In: updates from polling or a webhook. Out: authorised messages for the inbox; replies through `reply-
 * port.ts`.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { chatCommands } from '../../commands/chat-table.ts'
import { AppError, isAppError } from '../../domain/errors.ts'
import { authorise } from '../authorisation.ts'
import type { Platform, PlatformInbox, PlatformStatus, WebhookRequest } from '../platform.ts'
import type { PlatformParts } from '../descriptor.ts'
import { createTelegramApi, refusalOf, signalFor, toDeliveryError } from './client.ts'
import { menuCommands } from './commands.ts'
import { identify } from './identify.ts'
import { parseUpdate, type TelegramSelf } from './parse.ts'
import { allowedUpdates, LONG_POLL_SECONDS, poll } from './polling.ts'
import { createReplies } from '../replies/engine.ts'
import { LIMIT, telegramReplies } from './reply-port.ts'
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
}

const defaultPace: Pace = { requestTimeoutMs: 10_000, previewEveryMs: 2_000, pauseMs: 1_000, retryMs: 10_000 }

/** Telegram, by long polling or webhook. Throws if a setting is missing, before connecting. */
export const createTelegramPlatform = async (
  settings: TelegramSettings,
  { log: given, clock }: Pick<PlatformParts, 'log' | 'clock'>,
  overrides: Partial<Pace> = {},
): Promise<Platform> => {
  const pace = { ...defaultPace, ...overrides }
  const { botToken, allowedUsers, apiUrl, webhook } = usableSettings(settings)
  const log = given.child({ platform: 'telegram' })
  const api = createTelegramApi(botToken, apiUrl, pace.requestTimeoutMs)
  const waitingApi = createTelegramApi(botToken, apiUrl, LONG_POLL_SECONDS * 1000 + pace.requestTimeoutMs)
  const replies = createReplies(telegramReplies({ api, log, previewEveryMs: pace.previewEveryMs }), { clock, log })
  let inbox: PlatformInbox | undefined
  let self: TelegramSelf | undefined
  let stopping = new AbortController()
  let working: Promise<void> | undefined
  let status: PlatformStatus = { state: 'disconnected', since: clock(), lastMessageAt: undefined, lastError: undefined }
  const become = (state: PlatformStatus['state'], problem?: string): void => {
    const since = state === status.state ? status.since : clock()
    status = { ...status, state, since, lastError: problem ?? status.lastError }
  }

  /** Resolves once the message is durable or ignored. */
  const onUpdate = async (update: unknown): Promise<void> => {
    if (inbox === undefined || self === undefined) throw notNow()
    const parsed = parseUpdate(update, self)
    if ('ignored' in parsed) return log.debug('ignored a Telegram update', { why: parsed.ignored })
    const { message, userId } = parsed
    const by = authorise({ kind: 'listed', userId, allowed: allowedUsers })
    if (by === undefined) return log.warn('ignored a message: its author is not an allowed user', { userId })
    const { outcome } = await inbox.accept(message, by)
    status = { ...status, lastMessageAt: clock() }
    if (outcome === 'accepted') replies.onUserMessage(message.conversationId)
  }

  const connect = async (signal: AbortSignal): Promise<void> => {
    self = await identify(api, signal)
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
    void api.setMyCommands(menuCommands(chatCommands), {}, signalFor(signal)).catch((error: unknown) => {
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
      inbox = undefined
      replies.stopPreviews()
      become('disconnected')
    },
    ...(webhook !== undefined && {
      webhook: (request: WebhookRequest) => answerWebhook(request, webhook.secret, onUpdate, log.warn),
    }),
  }
}

const notNow = (): AppError => new AppError('busy', 'Coppice is not accepting messages right now')

/*
 * Discord. In: gateway events and interactions. Out: authorised messages for the inbox; replies through `reply-
 * port.ts`.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Platform, PlatformStatus } from '../platform.ts'
import { createButtonData } from '../button-data.ts'
import type { PlatformParts } from '../descriptor.ts'
import { MAX_BUTTON_BYTES } from './buttons.ts'
import { createCheckpoint } from './checkpoint.ts'
import { createDiscordApi, restOptions } from './client.ts'
import { type Connection, openConnection } from './connection.ts'
import { fetchDiscordFile, fileOrigins } from './files.ts'
import { LIMIT } from './reply-port.ts'
import { createSender } from './sender.ts'
import { type DiscordSettings, usableSettings } from './settings.ts'
import { createThreads } from './threads.ts'

/** Delays; tests use shorter ones. */
export type Pace = {
  readonly requestTimeoutMs: number
  readonly previewEveryMs: number
  /** How long startup waits for Discord; after that it continues, and the connection is made later. */
  readonly startMs: number
  /** How often the position in the stream of events is stored. */
  readonly saveMs: number
  /** When to read missed messages again after a failure. */
  readonly rereadMs: number
}

const defaultPace: Pace = {
  requestTimeoutMs: 10_000,
  previewEveryMs: 1_500,
  startMs: 10_000,
  saveMs: 10_000,
  rereadMs: 60_000,
}

export const createDiscordPlatform = async (
  settings: DiscordSettings,
  { log, clock, ids, memory }: Pick<PlatformParts, 'log' | 'clock' | 'ids' | 'memory'>,
  given: Partial<Pace> = {},
): Promise<Platform> => {
  const pace = { ...defaultPace, ...given }
  const { botToken: token, allowedUsers: allowed } = usableSettings(settings)
  const rest = restOptions(settings.apiUrl, pace.requestTimeoutMs)
  const api = createDiscordApi(token, rest)
  const buttons = createButtonData(memory, MAX_BUTTON_BYTES)
  const threads = createThreads(api)
  const origins = fileOrigins(settings.apiUrl)
  const checkpoint = createCheckpoint(memory, { token, clock, log })
  const keyOf = (messageId: string): string => `conversation:${messageId}`
  const sender = createSender({
    api,
    log,
    clock,
    buttons,
    threads,
    previewEveryMs: pace.previewEveryMs,
    onPostedInChannel: (id, conversationId) => memory.set(keyOf(id), conversationId),
  })
  let status: PlatformStatus = { state: 'disconnected', since: clock(), lastMessageAt: undefined, lastError: undefined }
  let open: Connection | undefined
  const note = (change: Partial<Omit<PlatformStatus, 'since'>>): void => {
    const moved = change.state !== undefined && change.state !== status.state
    status = { ...status, ...change, since: moved ? clock() : status.since }
  }
  return {
    platform: 'discord',
    limit: LIMIT,
    send: (message) => sender.send(message),
    preview: (conversationId, progress) => sender.preview(conversationId, progress),
    fetchAttachment: (attachment, signal) => fetchDiscordFile({ api, origins }, attachment, signal),
    status: () => status,
    start: async (inbox) => {
      if (open !== undefined) return
      note({ state: 'connecting' })
      open = openConnection({
        token,
        rest,
        clock,
        checkpoint,
        resumable: await checkpoint.load(),
        saveMs: pace.saveMs,
        rereadMs: pace.rereadMs,
        note,
        receiving: {
          api,
          sender,
          threads,
          buttons,
          memory,
          inbox,
          log,
          ids,
          allowed,
          fileOrigins: origins,
          conversationOf: (id) => memory.get(keyOf(id)),
          onAccepted: () => note({ lastMessageAt: clock() }),
        },
      })
      try {
        await Promise.race([open.started, delay(pace.startMs, undefined, { ref: false })])
      } catch (error) {
        await open.close()
        open = undefined
        throw error
      }
    },
    stop: async () => {
      sender.stop()
      const closing = open
      open = undefined
      await closing?.close()
      note({ state: 'disconnected' })
    },
  }
}

/*
 * Discord. In: gateway events and interactions. Out: authorised messages for the inbox; replies through `reply-
 * port.ts`.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { APIInteraction } from 'discord.js'
import { chatCommands } from '../../commands/chat-table.ts'
import type { Platform, PlatformInbox, PlatformStatus } from '../platform.ts'
import type { PlatformParts } from '../descriptor.ts'
import { createDiscordApi, restOptions } from './client.ts'
import { applicationCommands } from './commands.ts'
import { conversationIdOf } from './conversation-id.ts'
import { type Gateway, openGateway } from './gateway.ts'
import type { CreatedMessage } from './parse.ts'
import { createReceiver, type Receiver } from './receiver.ts'
import { LIMIT } from './reply-port.ts'
import { createSender } from './sender.ts'
import { type DiscordSettings, usableSettings } from './settings.ts'

/** Delays; tests use shorter ones. */
export type Pace = {
  readonly requestTimeoutMs: number
  readonly previewEveryMs: number
  /** How long startup waits for Discord; after that it continues, and the connection is made later. */
  readonly startMs: number
}

const defaultPace: Pace = { requestTimeoutMs: 10_000, previewEveryMs: 1_500, startMs: 10_000 }

export const createDiscordPlatform = async (
  settings: DiscordSettings,
  { log, clock, ids }: Pick<PlatformParts, 'log' | 'clock' | 'ids'>,
  given: Partial<Pace> = {},
): Promise<Platform> => {
  const pace = { ...defaultPace, ...given }
  const { botToken: token, allowedUsers: allowed } = usableSettings(settings)
  const rest = restOptions(settings.apiUrl, pace.requestTimeoutMs)
  const api = createDiscordApi(token, rest)
  const sender = createSender({ api, log, clock, previewEveryMs: pace.previewEveryMs })
  let status: PlatformStatus = { state: 'disconnected', since: clock(), lastMessageAt: undefined, lastError: undefined }
  let open: { readonly gateway: Gateway; readonly receiver: Receiver } | undefined
  const note = (change: Partial<Omit<PlatformStatus, 'since'>>): void => {
    const moved = change.state !== undefined && change.state !== status.state
    status = { ...status, ...change, since: moved ? clock() : status.since }
  }
  const begin = (inbox: PlatformInbox): { readonly gateway: Gateway; readonly receiver: Receiver } => {
    const receiver = createReceiver({
      api,
      sender,
      inbox,
      log,
      ids,
      allowed,
      channel: async (id) => gateway.channel(id) ?? api.channel(id),
      onAccepted: () => note({ lastMessageAt: clock() }),
    })
    let self = ''
    const gateway = openGateway({
      token,
      rest,
      log,
      onReady: (own, application) => {
        self = own
        api.register(application, applicationCommands(chatCommands)).catch((error: unknown) => {
          log.warn('the commands could not be registered with Discord', { error })
          note({ lastError: 'the commands could not be registered' })
        })
      },
      onMessage: (message: CreatedMessage) => receiver.message(message, self),
      onInteraction: (interaction: APIInteraction) => receiver.interaction(interaction),
      onThreadDelete: ({ id, parent_id }) =>
        receiver.closed(conversationIdOf({ channel: id, parent: parent_id ?? undefined }), id),
      onState: (state, problem) => note({ state, ...(problem !== undefined && { lastError: problem }) }),
    })
    return { gateway, receiver }
  }
  return {
    platform: 'discord',
    limit: LIMIT,
    send: (message) => sender.send(message),
    preview: (conversationId, text) => sender.preview(conversationId, text),
    status: () => status,
    start: async (inbox) => {
      if (open !== undefined) return
      note({ state: 'connecting' })
      open = begin(inbox)
      try {
        await Promise.race([open.gateway.started, delay(pace.startMs, undefined, { ref: false })])
      } catch (error) {
        await open.gateway.close()
        open = undefined
        throw error
      }
    },
    stop: async () => {
      sender.stop()
      const closing = open
      open = undefined
      await closing?.gateway.close()
      // Discord doesn't resend what has arrived, so it is still accepted.
      await closing?.receiver.settled()
      note({ state: 'disconnected' })
    },
  }
}

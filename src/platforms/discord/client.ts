import {
  type APIActionRowComponent,
  type APIButtonComponent,
  type APIMessage,
  type APIThreadChannel,
  type ChannelType,
  InteractionResponseType,
  MessageFlags,
  REST,
  type RESTOptions,
  type RESTPostAPIApplicationCommandsJSONBody,
  Routes,
} from 'discord.js'
import type { ChannelKind } from './parse.ts'

/** The API calls we make. Each throws the SDK's errors. */
export type DiscordApi = {
  self(): Promise<string>
  channel(id: string): Promise<ChannelKind>
  message(channel: string, id: string): Promise<APIMessage>
  /** Newest first, as Discord returns them. */
  messages(channel: string, options: MessagesOptions): Promise<APIMessage[]>
  /** With a nonce used in the last minutes, returns that message instead of posting a new one. */
  post(channel: string, content: string, how: PostOptions): Promise<string>
  edit(channel: string, id: string, content: string, components: readonly ButtonRow[]): Promise<void>
  setComponents(channel: string, id: string, components: readonly ButtonRow[]): Promise<void>
  react(channel: string, id: string, emoji: string): Promise<void>
  remove(channel: string, id: string): Promise<void>
  startThread(parent: string, message: string, name: string): Promise<void>
  typing(channel: string): Promise<void>
  register(application: string, commands: readonly RESTPostAPIApplicationCommandsJSONBody[]): Promise<void>
  /** Acknowledges a command; without content: as taking a while. */
  acknowledge(interaction: Interaction, content: string | undefined): Promise<void>
  editAcknowledgement(interaction: Interaction, content: string): Promise<void>
  /** Acknowledges a press without showing anything. */
  acknowledgePress(interaction: Interaction): Promise<void>
  /** Acknowledges an interaction with a message that only its author sees. */
  whisper(interaction: Interaction, content: string): Promise<void>
  /** The same, once it is acknowledged. */
  whisperLater(interaction: Interaction, content: string): Promise<void>
}

/** `after`: the oldest ones after that message. */
export type MessagesOptions = { readonly limit: number; readonly before?: string; readonly after?: string }

export type PostOptions = {
  readonly nonce: string
  readonly replyTo?: string | undefined
  readonly components?: readonly ButtonRow[]
}

export type ButtonRow = APIActionRowComponent<APIButtonComponent>

export type Interaction = { readonly id: string; readonly token: string; readonly application_id: string }

/** Longer waits are left to the outbox, which survives a restart; shorter ones the SDK waits out. */
const MAX_PAUSE_MS = 2_500

/** Options for the gateway's and our own calls. */
export const restOptions = (apiUrl: string | undefined, timeoutMs: number): Partial<RESTOptions> => ({
  ...(apiUrl !== undefined && { api: apiUrl }),
  // One immediate retry; after that the outbox retries, durably.
  retries: 1,
  timeout: timeoutMs,
  offset: ADDED_MS,
  // Without a usable time to wait, the SDK would ask again at once, and again.
  rejectOnRateLimit: ({ retryAfter, timeToReset }) =>
    !(retryAfter > ADDED_MS) || Math.max(retryAfter, timeToReset) > MAX_PAUSE_MS,
})

/** The SDK adds this to each wait. */
const ADDED_MS = 50

/** A call may wait its turn, and be retried; after so many timeouts it has failed. */
const MOST_TIMEOUTS = 3

/** The SDK waits out any number of short pauses, one after the other, so each call has a limit of its own. */
const boundedRest = (options: Partial<RESTOptions>): REST => {
  const rest = new REST(options)
  const { timeout } = rest.options
  const request = rest.request.bind(rest)
  return Object.assign(rest, {
    request: (given: Parameters<typeof request>[0]) =>
      request({ ...given, signal: AbortSignal.timeout(timeout * MOST_TIMEOUTS) }),
  })
}

export const createDiscordApi = (token: string, options: Partial<RESTOptions>): DiscordApi => {
  const rest = boundedRest(options)
  // Set every time: the SDK drops the token at the first 401.
  const asBot = (): REST => rest.setToken(token)
  let self: string | undefined
  return {
    self: async () => (self ??= ((await asBot().get(Routes.user())) as { id: string }).id),
    channel: async (id) => {
      const { type, parent_id, guild_id } = (await asBot().get(Routes.channel(id))) as Pick<
        APIThreadChannel,
        'parent_id' | 'guild_id'
      > & { type: ChannelType }
      return { type, parentId: parent_id ?? undefined, guildId: guild_id }
    },
    message: async (channel, id) => (await asBot().get(Routes.channelMessage(channel, id))) as APIMessage,
    messages: async (channel, { limit, ...range }) => {
      const query = new URLSearchParams({ limit: String(limit), ...range })
      return (await asBot().get(Routes.channelMessages(channel), { query })) as APIMessage[]
    },
    post: async (channel, content, { nonce, replyTo, components = [] }) => {
      const reference =
        replyTo === undefined ? {} : { message_reference: { message_id: replyTo, fail_if_not_exists: false } }
      const buttons = components.length === 0 ? {} : { components }
      const body = { ...messageBody(content), ...reference, ...buttons, nonce, enforce_nonce: true }
      return ((await asBot().post(Routes.channelMessages(channel), { body })) as APIMessage).id
    },
    edit: async (channel, id, content, components) => {
      await asBot().patch(Routes.channelMessage(channel, id), { body: { ...messageBody(content), components } })
    },
    setComponents: async (channel, id, components) => {
      await asBot().patch(Routes.channelMessage(channel, id), { body: { components } })
    },
    react: async (channel, id, emoji) => {
      await asBot().put(Routes.channelMessageOwnReaction(channel, id, encodeURIComponent(emoji)))
    },
    remove: async (channel, id) => {
      await asBot().delete(Routes.channelMessage(channel, id))
    },
    startThread: async (parent, message, name) => {
      await asBot().post(Routes.threads(parent, message), { body: { name } })
    },
    typing: async (channel) => {
      await asBot().post(Routes.channelTyping(channel))
    },
    register: async (application, body) => {
      await asBot().put(Routes.applicationCommands(application), { body })
    },
    acknowledge: async ({ id, token: own }, content) => {
      const body =
        content === undefined
          ? { type: InteractionResponseType.DeferredChannelMessageWithSource }
          : { type: InteractionResponseType.ChannelMessageWithSource, data: messageBody(content) }
      await rest.post(Routes.interactionCallback(id, own), { body, auth: false })
    },
    editAcknowledgement: async ({ application_id, token: own }, content) => {
      await rest.patch(Routes.webhookMessage(application_id, own), { body: messageBody(content), auth: false })
    },
    acknowledgePress: async ({ id, token: own }) => {
      const body = { type: InteractionResponseType.DeferredMessageUpdate }
      await rest.post(Routes.interactionCallback(id, own), { body, auth: false })
    },
    whisper: async ({ id, token: own }, content) => {
      const body = { type: InteractionResponseType.ChannelMessageWithSource, data: whispered(content) }
      await rest.post(Routes.interactionCallback(id, own), { body, auth: false })
    },
    whisperLater: async ({ application_id, token: own }, content) => {
      await rest.post(Routes.webhook(application_id, own), { body: whispered(content), auth: false })
    },
  }
}

/** An agent's text mentions nobody, and its links have no embeds. */
const messageBody = (content: string) => ({
  content,
  allowed_mentions: { parse: [] },
  flags: MessageFlags.SuppressEmbeds,
})

const whispered = (content: string) => ({
  ...messageBody(content),
  flags: MessageFlags.SuppressEmbeds | MessageFlags.Ephemeral,
})

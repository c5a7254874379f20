/** What Discord remembers, as far as the bot can see it. */

export type User = { readonly id: string; readonly username: string; readonly bot?: boolean }

export type Message = {
  readonly id: string
  readonly channel_id: string
  readonly guild_id?: string
  readonly author: User
  content: string
  readonly timestamp: string
  edited_timestamp: string | null
  readonly type: number
  readonly mentions: readonly User[]
  readonly nonce?: string
  readonly webhook_id?: string
  readonly referenced_message?: Message
  readonly message_reference?: { readonly message_id: string }
  readonly allowed_mentions?: unknown
}

export type Channel = {
  readonly id: string
  readonly type: number
  readonly guild_id?: string
  readonly parent_id?: string
  readonly owner_id?: string
  readonly name?: string
}

export const self: User = { id: '900000000000000001', username: 'coppice', bot: true }
export const applicationId = '900000000000000002'
export const guildId = '900000000000000003'
export const alice: User = { id: '100000000000000001', username: 'alice' }
export const mallory: User = { id: '100000000000000002', username: 'mallory' }

export type State = {
  readonly channels: Map<string, Channel>
  readonly messages: Map<string, Message[]>
  readonly commands: unknown[]
  /** By interaction: what it was answered with. */
  readonly callbacks: { readonly id: string; readonly type: number; content: string | undefined }[]
  readonly tokens: Map<string, { readonly id: string; readonly at: number }>
  snowflake(): string
  add(message: Omit<Message, 'timestamp' | 'edited_timestamp'>): Message
  of(channel: string): readonly Message[]
  addChannel(channel: Channel): Channel
}

export const createState = (): State => {
  let last = 0n
  const state: State = {
    channels: new Map(),
    messages: new Map(),
    commands: [],
    callbacks: [],
    tokens: new Map(),
    snowflake: () => {
      const now = (BigInt(Date.now()) - 1_420_070_400_000n) << 22n
      last = now > last ? now : last + 1n
      return String(last)
    },
    add: (message) => {
      const whole = { ...message, timestamp: new Date().toISOString(), edited_timestamp: null }
      state.messages.set(message.channel_id, [...state.of(message.channel_id), whole])
      return whole
    },
    of: (channel) => state.messages.get(channel) ?? [],
    addChannel: (channel) => {
      state.channels.set(channel.id, channel)
      return channel
    },
  }
  return state
}

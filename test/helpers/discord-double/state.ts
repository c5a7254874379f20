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
  readonly attachments?: readonly Attachment[]
  components?: readonly Row[]
  /** By emoji, of the bot. */
  readonly reactions?: string[]
}

export type Attachment = {
  readonly id: string
  readonly filename: string
  readonly content_type?: string
  readonly size: number
  readonly url: string
}

export type Button = { readonly label: string; readonly custom_id: string; readonly disabled?: boolean }
export type Row = { readonly type: 1; readonly components: readonly Button[] }

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
  readonly callbacks: {
    readonly id: string
    readonly type: number
    content: string | undefined
    /** Only its author sees it. */
    readonly whispered?: boolean
  }[]
  /** The content of files, by the path of their URL. */
  readonly files: Map<string, string>
  /** What the bot isn't allowed to do. */
  readonly denied: Set<'threads' | 'reactions'>
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
    files: new Map(),
    denied: new Set(),
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

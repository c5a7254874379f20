import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createGateway, type GatewayDouble } from './gateway.ts'
import { createRest, type Failing, type RestDouble } from './rest.ts'
import {
  alice,
  applicationId,
  type Attachment,
  type Button,
  type Channel,
  createState,
  guildId,
  type Message,
  self,
  type State,
  type User,
} from './state.ts'

/** Discord on loopback: REST and gateway, with the state that ties them together. */
export type DiscordDouble = {
  /** What DISCORD_API_URL is set to. */
  readonly apiUrl: string
  readonly token: string
  readonly state: State
  readonly rest: RestDouble
  readonly gateway: GatewayDouble
  readonly general: Channel
  /** Somebody says something; the bot is told. */
  say(text: string, options?: SayOptions): Message
  /** Somebody uses a command. Answers its id. */
  command(name: string, options?: CommandOptions): string
  /** Somebody presses a button below one of the bot's messages. Answers the id of the press. */
  press(label: string, options: { readonly in: string; readonly by?: User }): string
  /** A file for a message. Discord's client makes one called `message.txt` of a long text; that isn't documented. */
  /** The paths of the files that were downloaded. */
  readonly downloads: readonly string[]
  attach(filename: string, content: string, contentType?: string): Attachment
  /** What the bot has said there, in order. */
  saidIn(channel: string): string[]
  /** All calls that say something fail like this, until told otherwise. */
  breakSending(failing: Failing | undefined): void
  close(): Promise<void>
}

export type SayOptions = {
  readonly in?: string
  readonly by?: User
  readonly direct?: boolean
  readonly message?: Partial<Message>
  /** Without the bot being told. */
  readonly quietly?: boolean
}

export type CommandOptions = {
  readonly in?: string
  readonly by?: User
  readonly options?: readonly unknown[]
}

export const token = 'the.bot.token'

export const startDiscord = async (): Promise<DiscordDouble> => {
  const downloads: string[] = []
  const state = createState()
  const general = state.addChannel({ id: state.snowflake(), type: 0, guild_id: guildId, name: 'general' })
  const server = createServer((request, response) => {
    if (
      request.url === '/api/v10/gateway/bot' &&
      rest.fail({ method: 'GET', path: '/gateway/bot', body: {} }) === undefined
    ) {
      const known = request.headers.authorization === `Bot ${token}`
      response.writeHead(known ? 200 : 401, { 'content-type': 'application/json' })
      const limit = { total: 1_000, remaining: 1_000, reset_after: 0, max_concurrency: 1 }
      const open = { url: `ws://${request.headers.host ?? ''}/gateway`, shards: 1, session_start_limit: limit }
      response.end(JSON.stringify(known ? open : { message: '401: Unauthorized', code: 0 }))
      return
    }
    // Discord's CDN, for whom a link is enough.
    const file = state.files.get(request.url ?? '')
    if (file !== undefined) {
      downloads.push(request.url ?? '')
      response.writeHead(200, { 'content-type': 'text/plain' }).end(file)
      return
    }
    void rest.handle(request, response)
  })
  const gateway = createGateway(server, state, token)
  const rest = createRest(state, token, (event, data) => void gateway.dispatch(event, data))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const interact = (channel: string, by: User, what: object): string => {
    const id = state.snowflake()
    state.tokens.set(`token-${id}`, { id, at: Date.now() })
    const place = state.channels.get(channel)
    gateway.dispatch('INTERACTION_CREATE', {
      id,
      application_id: applicationId,
      token: `token-${id}`,
      version: 1,
      channel: place,
      channel_id: channel,
      ...(place?.guild_id === undefined ? { user: by } : { guild_id: guildId, member: { user: by, roles: [] } }),
      entitlements: [],
      authorizing_integration_owners: { 0: guildId },
      app_permissions: '0',
      attachment_size_limit: 10_000_000,
      ...what,
    })
    return id
  }
  return {
    apiUrl: `http://127.0.0.1:${port}/api`,
    token,
    state,
    downloads,
    rest,
    gateway,
    general,
    say: (text, options = {}) => {
      const message = spoken(state, general, text, options)
      if (options.quietly !== true) gateway.dispatch('MESSAGE_CREATE', message)
      return message
    },
    command: (name, { in: channel = general.id, by = alice, options = [] } = {}) =>
      interact(channel, by, { type: 2, data: { id: '1', name, type: 1, options } }),
    press: (label, { in: channel, by = alice }) => {
      const buttons = (one: Message): readonly Button[] => one.components?.flatMap((row) => row.components) ?? []
      const isShown = (button: Button): boolean => button.label === label && button.disabled !== true
      const message = state.of(channel).findLast((one) => buttons(one).some(isShown))
      const button = message === undefined ? undefined : buttons(message).find(isShown)
      if (button === undefined) throw new Error(`there is no button ${label}`)
      const data = { component_type: 2, custom_id: button.custom_id }
      return interact(channel, by, { type: 3, data, message })
    },
    attach: (filename, content, contentType = 'text/plain; charset=utf-8') => {
      const id = state.snowflake()
      const path = `/attachments/1/${id}/${filename}`
      state.files.set(path, content)
      const url = `http://127.0.0.1:${port}${path}`
      return { id, filename, content_type: contentType, size: Buffer.byteLength(content), url }
    },
    saidIn: (channel) =>
      state
        .of(channel)
        .filter(({ author }) => author.id === self.id)
        .map(({ content }) => content),
    breakSending: (failing) => {
      rest.fail = ({ method, path }) => (method === 'GET' || path.endsWith('/typing') ? undefined : failing)
    },
    close: async () => {
      gateway.drop()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** `@coppice` stands for a mention of the bot. */
const spoken = (state: State, general: Channel, said: string, options: SayOptions): Message => {
  const { in: channel = general.id, by = alice, direct = false, message = {} } = options
  if (!state.channels.has(channel))
    state.addChannel({ id: channel, type: direct ? 1 : 0, ...(!direct && { guild_id: guildId }) })
  const content = said.replaceAll('@coppice', `<@${self.id}>`)
  return state.add({
    id: state.snowflake(),
    channel_id: channel,
    ...(!direct && { guild_id: guildId }),
    author: by,
    content,
    type: 0,
    mentions: content.includes(`<@${self.id}>`) ? [self] : [],
    attachments: [],
    reactions: [],
    ...message,
  })
}

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createGateway, type GatewayDouble } from './gateway.ts'
import { createRest, type Failing, type RestDouble } from './rest.ts'
import {
  alice,
  applicationId,
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
    void rest.handle(request, response)
  })
  const gateway = createGateway(server, state, token)
  const rest = createRest(state, token, (event, data) => void gateway.dispatch(event, data))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    apiUrl: `http://127.0.0.1:${port}/api`,
    token,
    state,
    rest,
    gateway,
    general,
    say: (text, options = {}) => {
      const message = spoken(state, general, text, options)
      if (options.quietly !== true) gateway.dispatch('MESSAGE_CREATE', message)
      return message
    },
    command: (name, { in: channel = general.id, by = alice, options = [] } = {}) => {
      const id = state.snowflake()
      state.tokens.set(`token-${id}`, { id, at: Date.now() })
      const place = state.channels.get(channel)
      gateway.dispatch('INTERACTION_CREATE', {
        id,
        application_id: applicationId,
        type: 2,
        token: `token-${id}`,
        version: 1,
        channel: place,
        channel_id: channel,
        ...(place?.guild_id === undefined ? { user: by } : { guild_id: guildId, member: { user: by, roles: [] } }),
        data: { id: '1', name, type: 1, options },
        entitlements: [],
        authorizing_integration_owners: { 0: guildId },
        app_permissions: '0',
        attachment_size_limit: 10_000_000,
      })
      return id
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
    ...message,
  })
}

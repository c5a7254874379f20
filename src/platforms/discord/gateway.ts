import { backoff } from '../../domain/backoff.ts'
import {
  type APIInteraction,
  Client,
  CloseCodes,
  DiscordAPIError,
  DiscordjsError,
  DiscordjsErrorCodes,
  Events,
  GatewayCloseCodes,
  GatewayDispatchEvents,
  GatewayIntentBits,
  type GatewayReadyDispatchData,
  type GatewayThreadDeleteDispatchData,
  Options,
  type RESTOptions,
  type SessionInfo,
  SimpleShardingStrategy,
  Status,
} from 'discord.js'
import { AppError } from '../../domain/errors.ts'
import type { Logger } from '../../process/log.ts'
import type { ChannelKind, CreatedMessage } from './parse.ts'

/** The connection for Discord's events. Reconnects indefinitely. */
export type Gateway = {
  /** Resolves at the first connection; rejects if there can be none: a bad token, a disallowed intent. */
  readonly started: Promise<void>
  /** What is known about a channel without a request. */
  channel(id: string): ChannelKind | undefined
  /** With it, a later connection receives what comes after its last event; undefined: there is none. */
  session(): GatewaySession | undefined
  /** Discord keeps the session for some minutes. */
  close(): Promise<void>
}

export type GatewaySession = Omit<SessionInfo, 'shardId'>

export type GatewayParts = {
  readonly token: string
  readonly rest: Partial<RESTOptions>
  readonly log: Logger
  /** Another process's session, to be resumed. */
  readonly session: GatewaySession | undefined
  /** A new session: messages from before it have to be read. */
  readonly onReady: (self: string, application: string) => void
  readonly onMessage: (message: CreatedMessage) => void
  readonly onInteraction: (interaction: APIInteraction) => void
  readonly onThreadDelete: (thread: GatewayThreadDeleteDispatchData) => void
  readonly onState: (state: 'connected' | 'connecting' | 'disconnected', problem?: string) => void
}

/**
 * Only what is needed: channels and threads, and messages in them and in private. Message content is privileged: it is
 * turned on by hand in the bot's settings.
 */
const INTENTS = [
  GatewayIntentBits.Guilds,
  GatewayIntentBits.GuildMessages,
  GatewayIntentBits.DirectMessages,
  GatewayIntentBits.MessageContent,
]

export const openGateway = (parts: GatewayParts): Gateway => {
  const first = Promise.withResolvers<void>()
  // The opener may stop waiting; the problem is then in the status.
  first.promise.catch(() => undefined)
  let isOpen = true
  const sessions: Sessions = { current: parts.session, managers: new Set() }
  let client: Client | undefined
  let timer: NodeJS.Timeout | undefined
  const giveUp = (problem: AppError): void => {
    parts.onState('disconnected', problem.message)
    first.reject(problem)
  }
  const connect = async (attempt: number): Promise<void> => {
    const fatal: { problem?: AppError } = {}
    client = listeningClient(parts, sessions, () => isOpen, {
      ready: first.resolve,
      fatal: (problem) => {
        fatal.problem = problem
        giveUp(problem)
      },
    })
    try {
      await client.login(parts.token)
    } catch (error) {
      const problem = fatal.problem ?? badToken(error)
      if (!isOpen) return
      if (problem !== undefined) return giveUp(problem)
      const pause = backoff(attempt + 1, { firstMs: FIRST_PAUSE_MS, longestMs: MAX_PAUSE_MS })
      parts.log.warn('Discord could not be reached', { attempt, pause, error })
      parts.onState(
        'connecting',
        `Discord could not be reached: ${error instanceof Error ? error.message : String(error)}`,
      )
      timer = setTimeout(() => void connect(attempt + 1), pause)
    }
  }
  void connect(0)
  return {
    started: first.promise,
    channel: (id) => {
      const found = client?.channels.cache.get(id)
      if (found === undefined) return undefined
      const parentId = found.isThread() ? (found.parentId ?? undefined) : undefined
      return { type: found.type, parentId, guildId: 'guildId' in found ? (found.guildId ?? undefined) : undefined }
    },
    session: () => sessions.current,
    close: async () => {
      isOpen = false
      clearTimeout(timer)
      const closing = closeResumable(sessions, client)
      // The SDK waits half a minute for a close frame that a broken connection won't bring.
      await Promise.race([closing, new Promise((resolve) => setTimeout(resolve, MAX_CLOSE_MS).unref())])
    },
  }
}

/** Code 1000, which the SDK sends, would end the session (Discord's documentation, "Disconnecting"). */
const closeResumable = async ({ managers }: Sessions, client: Client | undefined): Promise<void> => {
  for (const manager of managers) await manager.destroy({ code: CloseCodes.Resuming })
  await client?.destroy()
}

const FIRST_PAUSE_MS = 1_000
const MAX_PAUSE_MS = 60_000
const MAX_CLOSE_MS = 2_000

type GatewayEvents = {
  [GatewayDispatchEvents.Ready]: GatewayReadyDispatchData
  [GatewayDispatchEvents.Resumed]: unknown
  [GatewayDispatchEvents.MessageCreate]: CreatedMessage
  [GatewayDispatchEvents.InteractionCreate]: APIInteraction
  [GatewayDispatchEvents.ThreadDelete]: GatewayThreadDeleteDispatchData
}

type Manager = ConstructorParameters<typeof SimpleShardingStrategy>[0]

type Sessions = { current: GatewaySession | undefined; readonly managers: Set<Manager> }

type Outcome = { readonly ready: () => void; readonly fatal: (problem: AppError) => void }

const listeningClient = (
  parts: GatewayParts,
  sessions: Sessions,
  isOpen: () => boolean,
  { ready, fatal }: Outcome,
): Client => {
  const { log, onState } = parts
  const client = new Client({
    intents: INTENTS,
    rest: parts.rest,
    makeCache: Options.cacheWithLimits(cacheLimits),
    ws: {
      buildStrategy: (manager) => {
        sessions.managers.add(manager)
        withSessions(manager, sessions, isOpen)
        return new SimpleShardingStrategy(withErrorsCaught(withoutReconnect(manager, isOpen), log))
      },
    },
  })
  const on = <E extends keyof GatewayEvents>(event: E, listener: (data: GatewayEvents[E]) => void): void => {
    client.ws.on(event, (data: GatewayEvents[E]) => {
      if (isOpen()) listener(data)
    })
  }
  on(GatewayDispatchEvents.Ready, ({ user, application }) => {
    onState('connected')
    parts.onReady(user.id, application.id)
    ready()
  })
  on(GatewayDispatchEvents.Resumed, () => {
    // Another process's session has no READY, which the SDK waits for; until then it keeps every event.
    client.ws.status = Status.Ready
    onState('connected')
    ready()
  })
  on(GatewayDispatchEvents.MessageCreate, parts.onMessage)
  on(GatewayDispatchEvents.InteractionCreate, parts.onInteraction)
  on(GatewayDispatchEvents.ThreadDelete, parts.onThreadDelete)
  client.on(Events.ShardReconnecting, () => isOpen() && onState('connecting', 'the connection was lost'))
  client.on(Events.ShardDisconnect, ({ code }) => isOpen() && fatal(problemOf(code)))
  client.on(Events.ShardError, (error) => log.warn('the connection to Discord had an error', { error }))
  client.on(Events.Error, (error) => log.warn('the Discord SDK had an error', { error }))
  client.on(Events.Warn, (said) => log.debug('Discord SDK message', { said }))
  return client
}

/** Only channels and threads are looked up. */
const cacheLimits = {
  ...Options.DefaultMakeCacheSettings,
  MessageManager: 0,
  ReactionManager: 0,
  GuildEmojiManager: 0,
  GuildStickerManager: 0,
  PresenceManager: 0,
  VoiceStateManager: 0,
  ThreadMemberManager: 0,
}

/**
 * A connection that is reconnecting during shutdown would come back half a second later: the SDK forgets it without
 * ending it. It asks for its session first, so that request is left pending.
 */
const withoutReconnect = (manager: Manager, isOpen: () => boolean): Manager => {
  const { options } = manager
  const retrieve = options.retrieveSessionInfo.bind(options)
  options.retrieveSessionInfo = (shardId) => (isOpen() ? retrieve(shardId) : new Promise<never>(() => undefined))
  return manager
}

/** Keeps the session where it outlives the SDK's client, which begins with the one of another process. */
const withSessions = ({ options }: Manager, sessions: Sessions, isOpen: () => boolean): void => {
  const retrieve = options.retrieveSessionInfo.bind(options)
  const update = options.updateSessionInfo.bind(options)
  let stored = sessions.current
  options.updateSessionInfo = async (shardId, session) => {
    await update(shardId, session)
    stored = undefined
    // When we close, the SDK forgets it; Discord doesn't.
    if (isOpen()) sessions.current = session ?? undefined
  }
  options.retrieveSessionInfo = async (shardId) => {
    const known = await retrieve(shardId)
    if (known !== null || stored === undefined) return known
    const session = { ...stored, shardId }
    await options.updateSessionInfo(shardId, session)
    return session
  }
}

/** The SDK catches nothing: an unreadable event (a new or missing field) would end the process. */
const withErrorsCaught = (manager: Manager, log: Logger): Manager => {
  const emit: (...event: unknown[]) => boolean = manager.emit.bind(manager)
  const safeEmit = (...event: unknown[]): boolean => {
    try {
      return emit(...event)
    } catch (error) {
      log.warn('a Discord event could not be read', { error })
      return true
    }
  }
  return Object.assign(manager, { emit: safeEmit })
}

const badToken = (error: unknown): AppError | undefined =>
  (error instanceof DiscordjsError && error.code === DiscordjsErrorCodes.TokenInvalid) ||
  (error instanceof DiscordAPIError && error.status === 401)
    ? problemOf(GatewayCloseCodes.AuthenticationFailed)
    : undefined

/** Why Discord closes a connection permanently, and what to do. */
const closeReasons: Readonly<Record<number, readonly [problem: string, remedy: string]>> = {
  [GatewayCloseCodes.AuthenticationFailed]: [
    'Discord rejected the bot token',
    'create a new one (Developer Portal → Bot → Reset Token) and set DISCORD_BOT_TOKEN to it',
  ],
  [GatewayCloseCodes.DisallowedIntents]: [
    "Discord doesn't let the bot read messages",
    'turn on Developer Portal → Bot → Message Content Intent',
  ],
}

const problemOf = (code: number): AppError => {
  const [problem, remedy] = closeReasons[code] ?? [
    `Discord closed the connection permanently (${code})`,
    'see "Gateway Close Event Codes" in the Discord documentation',
  ]
  return new AppError('config-invalid', problem, { remedy })
}

import type { APIInteraction, RESTOptions } from 'discord.js'
import { chatCommands } from '../../commands/chat-table.ts'
import { DeliveryError } from '../../conversations/outbox/delivery.ts'
import { BoundedMap } from '../../domain/bounded-map.ts'
import type { Clock } from '../../domain/clock.ts'
import type { PlatformStatus } from '../platform.ts'
import type { Checkpoint, Resumable } from './checkpoint.ts'
import { applicationCommands } from './commands.ts'
import { conversationIdOf } from './conversation-id.ts'
import { openGateway } from './gateway.ts'
import { placesToRead } from './missed-messages.ts'
import type { ChannelKind, CreatedMessage } from './parse.ts'
import { createReceiver } from './receiver.ts'
import type { ReceiverParts } from './receiver-parts.ts'

/**
 * Receives every message, also across restarts: resumes an earlier process's session or, if that has expired, reads the
 * messages it missed.
 */
export type Connection = {
  /** Resolves at the first connection; rejects if there can be none. */
  readonly started: Promise<void>
  /** Passes on what has arrived, since Discord doesn't resend it. */
  close(): Promise<void>
}

export type ConnectionParts = {
  readonly token: string
  readonly rest: Partial<RESTOptions>
  readonly clock: Clock
  readonly checkpoint: Checkpoint
  readonly resumable: Resumable | undefined
  readonly saveMs: number
  readonly rereadMs: number
  readonly note: (change: Partial<Omit<PlatformStatus, 'since'>>) => void
  readonly receiving: Omit<ReceiverParts, 'channel'>
}

const MAX_CHANNELS = 10_000

export const openConnection = (parts: ConnectionParts): Connection => {
  const { receiving, checkpoint, note, resumable, clock } = parts
  const { api, log, memory } = receiving
  const kinds = new BoundedMap<string, ChannelKind>(MAX_CHANNELS)
  const channel = async (id: string): Promise<ChannelKind> => {
    const kind = gateway.channel(id) ?? kinds.get(id) ?? (await api.channel(id))
    kinds.set(id, kind)
    return kind
  }
  const receiver = createReceiver({ ...receiving, channel })
  let { self, application } = resumable ?? { self: '', application: '' }
  let isConnected = false
  /** Set until all gaps are read. The position doesn't advance meanwhile, so after a crash they are read again. */
  let gap: symbol | undefined
  let isOpen = true
  let savedSequence: number | undefined
  let rereading: NodeJS.Timeout | undefined

  const register = (): void => {
    api.register(application, applicationCommands(chatCommands)).catch((error: unknown) => {
      log.warn('the commands could not be registered with Discord', { error })
      note({ lastError: 'the commands could not be registered' })
    })
  }
  const readGap = async (): Promise<void> => {
    const since = await checkpoint.since()
    if (since === undefined) return
    const places = await placesToRead(memory, clock())
    await Promise.all(places.map((place) => receiver.catchUp(place, since, self)))
  }
  const closeGap = (): void => {
    clearTimeout(rereading)
    const mine = Symbol('gap')
    gap = mine
    void readGap()
      .then(() => (gap = gap === mine ? undefined : gap))
      .catch((error: unknown) => {
        log.warn('missed messages could not be read yet', { error })
        note({ lastError: 'missed messages could not be read yet' })
        const askedMs = error instanceof DeliveryError ? (error.retryAfterMs ?? 0) : 0
        if (gap === mine && isOpen) rereading = setTimeout(closeGap, Math.max(parts.rereadMs, askedMs)).unref()
      })
  }
  const save = async (): Promise<void> => {
    const session = gateway.session()
    if (!isConnected || gap !== undefined || session === undefined || session.sequence === savedSequence) return
    try {
      await checkpoint.save({ session, self, application }, () => receiver.settledSoFar())
      savedSequence = session.sequence
    } catch (error) {
      log.debug('the position on Discord could not be stored', { error })
    }
  }

  const gateway = openGateway({
    token: parts.token,
    rest: parts.rest,
    log,
    session: resumable?.session,
    onReady: (own, ownApplication) => {
      self = own
      application = ownApplication
      register()
      closeGap()
    },
    onMessage: (message: CreatedMessage) => {
      checkpoint.note(message.id)
      receiver.message(message, self)
    },
    onInteraction: (interaction: APIInteraction) => {
      checkpoint.note(interaction.id)
      receiver.interaction(interaction)
    },
    onThreadDelete: ({ id, parent_id }) =>
      receiver.closed(conversationIdOf({ channel: id, parent: parent_id ?? undefined }), id),
    onState: (state, problem) => {
      isConnected = state === 'connected'
      note({ state, ...(problem !== undefined && { lastError: problem }) })
    },
  })
  if (resumable !== undefined) register()
  const saving = setInterval(() => void save(), parts.saveMs).unref()
  return {
    started: gateway.started,
    close: async () => {
      isOpen = false
      clearInterval(saving)
      clearTimeout(rereading)
      await gateway.close()
      await receiver.settled()
      await save()
    },
  }
}

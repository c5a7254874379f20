import type { Ids } from '../../domain/clock.ts'
import type { Logger } from '../../process/log.ts'
import type { ButtonData } from '../button-data.ts'
import type { PlatformMemory } from '../memory.ts'
import type { PlatformInbox } from '../platform.ts'
import type { DiscordApi } from './client.ts'
import type { ChannelKind } from './parse.ts'
import type { Sender } from './sender.ts'
import type { Threads } from './threads.ts'

/** What handling an event needs. */
export type ReceiverParts = {
  readonly api: DiscordApi
  readonly sender: Sender
  readonly threads: Threads
  readonly buttons: ButtonData
  readonly memory: PlatformMemory
  readonly inbox: PlatformInbox
  readonly log: Logger
  readonly ids: Ids
  readonly allowed: readonly string[]
  readonly fileOrigins: readonly string[]
  readonly channel: (id: string) => Promise<ChannelKind>
  /** Which conversation a message of ours in a channel belongs to; undefined: its channel's. */
  readonly conversationOf: (messageId: string) => Promise<string | undefined>
  readonly onAccepted: () => void
}

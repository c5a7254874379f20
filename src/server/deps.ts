import type { ConversationsContext } from '../conversations/context.ts'
import type { Conversations } from '../conversations/conversations.ts'
import type { LocalPlatform } from '../platforms/local.ts'
import type { Platform } from '../platforms/platform.ts'
import type { FailedPlatform } from '../platforms/remote.ts'
import type { LocalPlatformName } from '../platforms/registry.ts'
import type { Redact } from '../process/redaction/redact.ts'
import type { RequestLimits } from './limits.ts'
import type { Metrics } from './metrics.ts'

/** The server's dependencies. Only `main.ts` creates them. */
export type ServerDeps = {
  readonly context: ConversationsContext
  readonly conversations: Conversations
  /** The enabled ones; without `test` its routes don't exist. */
  readonly platforms: ReadonlyMap<LocalPlatformName, LocalPlatform>
  /** Remote services' platforms, for their webhooks. */
  readonly remotes?: ReadonlyMap<string, Platform>
  /** Configured platforms that couldn't start, and why. */
  readonly failedPlatforms?: () => readonly FailedPlatform[]
  readonly token: string
  readonly version: string
  /** `SQLite, /home/…/coppice.db` */
  readonly databaseName: string
  readonly redact: Redact
  /** Another process with this home changed something. */
  readonly wake: () => void
  /** Reconciled, accepting, not stopping. */
  readonly ready: () => boolean
  /** Ends the event streams, so that shutdown doesn't wait for their readers. */
  readonly stopping: AbortSignal
  /** Host names to accept besides the loopback ones: `name` or `name:port`. */
  readonly allowedHosts?: readonly string[]
  readonly limits?: Partial<RequestLimits>
  /** Shared with the platforms, which count accepted messages. */
  readonly metrics: Metrics
}

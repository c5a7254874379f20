import type { ConversationsContext } from '../conversations/context.ts'
import type { Conversations } from '../conversations/conversations.ts'
import type { LocalPlatform } from '../platforms/local.ts'
import type { Platform } from '../platforms/platform.ts'
import type { Refused } from '../platforms/remote.ts'
import type { LocalPlatformName } from '../platforms/registry.ts'
import type { Redact } from '../process/redaction/redact.ts'
import type { RequestLimits } from './limits.ts'
import type { Metrics } from './metrics.ts'

/** What the server stands on. `main.ts` is the only place that makes one. */
export type ServerDeps = {
  readonly context: ConversationsContext
  readonly conversations: Conversations
  /** Those that are on; without `test` its routes do not exist. */
  readonly platforms: ReadonlyMap<LocalPlatformName, LocalPlatform>
  /** Those of services out there, for their webhooks. */
  readonly remotes?: ReadonlyMap<string, Platform>
  /** Those that are configured and could not be started, and why. */
  readonly refusedPlatforms?: () => readonly Refused[]
  readonly token: string
  readonly version: string
  /** `SQLite, /home/…/coppice.db` */
  readonly databaseName: string
  readonly redact: Redact
  /** Another process of this home changed something. */
  readonly wake: () => void
  /** Reconciled, accepting, not stopping. */
  readonly ready: () => boolean
  /** Ends the event streams, so that stopping does not wait for who only watches. */
  readonly stopping: AbortSignal
  /** Names by which the server may be called besides those of the loopback: `name` or `name:port`. */
  readonly allowedHosts?: readonly string[]
  readonly limits?: Partial<RequestLimits>
  /** The same one that counts what the platforms accept. */
  readonly metrics: Metrics
}

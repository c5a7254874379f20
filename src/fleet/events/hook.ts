import type { HookSettings } from '../../domain/config/hooks.ts'
import type { EventRecord } from '../../domain/fleet/event-record.ts'
import type { LoadPlatforms } from '../../domain/platform-capabilities.ts'
import type { ConversationKey, Store } from '../../store/store.ts'
import type { FleetContext } from '../context.ts'

/** A hook, and its place in the file, from 0. */
export type PlacedHook = { readonly hook: HookSettings; readonly at: number }

export type HookContext = Pick<FleetContext, 'isolation' | 'redact' | 'notify'> & {
  /** For people, and for programs. */
  readonly describe: (record: EventRecord) => { readonly text: string; readonly json: HookPayload }
  readonly platforms: LoadPlatforms
  /** Records a message for a conversation. */
  readonly post: (store: Store, to: ConversationKey, key: string, text: string) => Promise<void>
  /** Called once such a message is recorded. */
  readonly onPosted?: () => void
}

/** What a hook gets: the JSON of `coppice events --json`. */
export type HookPayload = {
  readonly number: number
  readonly kind: string
  readonly item: number | null
  readonly title: string | null
  readonly agent: string | null
  readonly codebase: string | null
  readonly needsYou: boolean
}

export type Attempted =
  | { readonly kind: 'delivered' }
  /** Delivered, and the hook's position is recorded as well. */
  | { readonly kind: 'recorded' }
  /** Neither delivered nor failed: we are stopping, or another process took over. */
  | { readonly kind: 'aborted' }
  | { readonly kind: 'failed'; readonly why: string }

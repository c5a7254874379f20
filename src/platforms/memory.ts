import type { Clock } from '../domain/clock.ts'
import type { Store } from '../store/store.ts'

/** What a platform keeps across restarts. */
export type PlatformMemory = {
  get(key: string): Promise<string | undefined>
  set(key: string, value: string): Promise<void>
  /** True at most once within this time, also across restarts. */
  once(key: string, withinMs: number): Promise<boolean>
  /** The platform's conversations, most recently active first. */
  recentConversations(limit: number): Promise<readonly RecentConversation[]>
}

export type RecentConversation = { readonly conversationId: string; readonly lastActivityAt: number }

export type MemoryStores = Pick<Store, 'platformMemory' | 'conversations'>

export const createMemory = (
  platform: string,
  { store: { platformMemory, conversations }, clock }: { readonly store: MemoryStores; readonly clock: Clock },
): PlatformMemory => ({
  get: (key) => platformMemory.get(platform, key),
  set: (key, value) => platformMemory.set(platform, key, value, clock()),
  once: (key, withinMs) => platformMemory.setIfOlder(platform, key, '', clock(), clock() - withinMs + 1),
  recentConversations: async (limit) =>
    (await conversations.recent({ platform, limit })).map(({ conversationId, lastActivityAt }) => ({
      conversationId,
      lastActivityAt,
    })),
})

import type { PlatformMemory, RecentConversation } from '../../src/platforms/memory.ts'

/** A platform's memory that outlives the platform, and not the test. The stored one has its own tests. */
export const memoryForTest = (
  recent: readonly RecentConversation[] = [],
  clock: () => number = Date.now,
): PlatformMemory => {
  const values = new Map<string, { readonly value: string; readonly at: number }>()
  return {
    get: async (key) => values.get(key)?.value,
    set: async (key, value) => void values.set(key, { value, at: clock() }),
    once: async (key, withinMs) => {
      const last = values.get(key)?.at
      if (last !== undefined && clock() - last < withinMs) return false
      values.set(key, { value: '', at: clock() })
      return true
    },
    recentConversations: async (limit) => recent.slice(0, limit),
  }
}

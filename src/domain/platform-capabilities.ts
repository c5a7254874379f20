/** What the rest of the program needs to know about a platform. */
export type PlatformCapabilities = {
  readonly reach: Reach
  /** Chats never end there, so their environments belong to the user and are never removed automatically. */
  readonly persistent: boolean
  /** The thread's own ID, where ours has more in it. Other tools know the conversation by that. */
  readonly threadIdOf?: (conversationId: string) => string | undefined
  /** The issue or pull request that a conversation's ID names, where IDs do. */
  readonly numberOf?: (conversationId: string) => { readonly github: string; readonly number: number } | undefined
}

/**
 * What a conversation may see and change. `server`: only this server's users take part, so everything. `repository`: a
 * thread belongs to a repository and may be public, so only that repository.
 */
export type Reach = 'server' | 'repository'

/** By name. */
export type KnownPlatforms = ReadonlyMap<string, PlatformCapabilities>

/** Loaded on first use: most commands don't need it. */
export type LoadPlatforms = () => Promise<KnownPlatforms>

/** An unknown platform gets the narrowest. */
export const capabilitiesOf = (platforms: KnownPlatforms, name: string): PlatformCapabilities =>
  platforms.get(name) ?? { reach: 'repository', persistent: false }

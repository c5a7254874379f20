/** What the rest of the program has to know about a platform in order to treat its conversations right. */
export type PlatformCapabilities = {
  readonly reach: Reach
  /** A chat has no end there, so its environment belongs to its user and no automation removes it. */
  readonly persistent: boolean
}

/**
 * What a conversation may see and change. `server`: only people of this server take part. `repository`: a thread belongs
 * to a repository and everybody may be able to read it, so it is about that repository and nothing else here.
 */
export type Reach = 'server' | 'repository'

/** By name. */
export type KnownPlatforms = ReadonlyMap<string, PlatformCapabilities>

/** Loaded when it is first needed: most commands need none of it. */
export type LoadPlatforms = () => Promise<KnownPlatforms>

/** A platform that is not known gets the narrowest. */
export const capabilitiesOf = (platforms: KnownPlatforms, name: string): PlatformCapabilities =>
  platforms.get(name) ?? { reach: 'repository', persistent: false }

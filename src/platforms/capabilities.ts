import type { KnownPlatforms } from '../domain/platform-capabilities.ts'
import { localCapabilities } from './local.ts'
import { localPlatforms } from './registry.ts'
import { anyDescriptor, remoteNames } from './remote.ts'

/** Every platform, configured or not: conversations on a disabled one are still in the store. */
export const knownPlatforms: KnownPlatforms = new Map([
  ...Object.keys(localPlatforms).map((name) => [name, localCapabilities] as const),
  ...remoteNames.map((name) => [name, anyDescriptor(name).capabilities] as const),
])

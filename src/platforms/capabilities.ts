import type { KnownPlatforms } from '../domain/platform-capabilities.ts'
import { localCapabilities } from './local.ts'
import { localPlatforms } from './registry.ts'
import { anyDescriptor, remoteNames } from './remote.ts'

/** Every platform there is, configured or not: a conversation of one that is switched off is still in the records. */
export const knownPlatforms: KnownPlatforms = new Map([
  ...Object.keys(localPlatforms).map((name) => [name, localCapabilities] as const),
  ...remoteNames.map((name) => [name, anyDescriptor(name).capabilities] as const),
])

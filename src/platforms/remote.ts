import { toAppError } from '../domain/errors.ts'
import type { PlatformDescriptor, PlatformParts, SettingTable, ValuesOf } from './descriptor.ts'
import { discord } from './discord/descriptor.ts'
import { github } from './github/descriptor.ts'
import { createMemory, type MemoryStores } from './memory.ts'
import type { Platform } from './platform.ts'
import { slack } from './slack/descriptor.ts'
import { telegram } from './telegram/descriptor.ts'
import type { Remedy } from '../domain/remedy.ts'

/** Platforms that need an account. To add one: a folder and a line here. */
const descriptors = { github, slack, discord, telegram } as const

export type RemotePlatformName = keyof typeof descriptors

/** Each platform's configured values. */
export type PlatformSettings = {
  readonly [Name in RemotePlatformName]: ValuesOf<(typeof descriptors)[Name]['settings']>
}

export const remoteNames = Object.keys(descriptors) as readonly RemotePlatformName[]

export const isRemotePlatform = (name: string): name is RemotePlatformName => Object.hasOwn(descriptors, name)

/** For generic code, which doesn't know the settings' keys. */
export const anyDescriptor = (name: RemotePlatformName): PlatformDescriptor<SettingTable> => descriptors[name]

export type FailedPlatform = {
  readonly platform: string
  readonly problem: string
  readonly remedy: Remedy | undefined
}

/** The configured ones, loaded on demand. One that fails doesn't stop the others. */
export const remotePlatforms = async (
  settings: PlatformSettings,
  parts: Omit<PlatformParts, 'memory'> & { readonly store: MemoryStores },
): Promise<{ readonly platforms: ReadonlyMap<string, Platform>; readonly refused: readonly FailedPlatform[] }> => {
  const platforms = new Map<string, Platform>()
  const refused: FailedPlatform[] = []
  for (const name of remoteNames) {
    const descriptor = anyDescriptor(name)
    if (!descriptor.isConfigured(settings[name])) continue
    try {
      platforms.set(name, await descriptor.create(settings[name], { ...parts, memory: createMemory(name, parts) }))
    } catch (error) {
      const { message, remedy } = toAppError(error)
      refused.push({ platform: name, problem: message, remedy })
    }
  }
  return { platforms, refused }
}

import type { Clock, Ids } from '../domain/clock.ts'
import { toAppError } from '../domain/errors.ts'
import type { Logger } from '../process/log.ts'
import type { Secrets } from '../process/redact.ts'
import type { Platform } from './platform.ts'
import type { PlatformSettings, RemotePlatformName } from './settings.ts'

/** What a platform is made of. `main.ts` is the only place that makes one. */
export type PlatformParts = {
  readonly settings: PlatformSettings
  readonly log: Logger
  readonly clock: Clock
  readonly ids: Ids
}

/** For a platform that is handed credentials while it runs: they are hidden like those of the settings. */
export type SecretsToHide = { readonly secrets: Pick<Secrets, 'add' | 'forget'> }

type Maker = (parts: PlatformParts & SecretsToHide) => Promise<Platform>

/**
 * The platforms that need an account. Adding one is a folder and a line. Each is loaded only when it is configured, and
 * throws one sentence when it cannot be used: no secret, no allow-list, a token that is none.
 */
const makers: Partial<Record<RemotePlatformName, Maker>> = {
  slack: async (parts) => (await import('./slack/platform.ts')).createSlackPlatform(parts),
  github: async (parts) => (await import('./github/platform.ts')).createGithubPlatform(parts),
  discord: async (parts) => (await import('./discord/platform.ts')).createDiscordPlatform(parts),
  telegram: async (parts) => (await import('./telegram/platform.ts')).createTelegramPlatform(parts),
}

export type Refused = { readonly platform: string; readonly problem: string; readonly remedy: string | undefined }

/** Those that are configured. One that refuses does not keep the others from it. */
export const remotePlatforms = async (
  parts: PlatformParts & SecretsToHide,
): Promise<{ readonly platforms: ReadonlyMap<string, Platform>; readonly refused: readonly Refused[] }> => {
  const platforms = new Map<string, Platform>()
  const refused: Refused[] = []
  for (const [name, make] of Object.entries(makers)) {
    if (!isConfigured(parts.settings, name as RemotePlatformName)) continue
    try {
      platforms.set(name, await make(parts))
    } catch (error) {
      const { message, remedy } = toAppError(error)
      refused.push({ platform: name, problem: message, remedy })
    }
  }
  return { platforms, refused }
}

/**
 * Somebody wants it: there is something by which it could be reached. `GITHUB_TOKEN` alone is for private remotes and
 * says nothing about a bot.
 */
export const isConfigured = (settings: PlatformSettings, name: RemotePlatformName): boolean => {
  switch (name) {
    case 'github':
      return settings.github.webhookSecret !== undefined || settings.github.bot !== undefined
    case 'slack':
      return settings.slack.botToken !== undefined || settings.slack.appToken !== undefined
    case 'discord':
      return settings.discord.botToken !== undefined
    case 'telegram':
      return settings.telegram.botToken !== undefined
  }
}

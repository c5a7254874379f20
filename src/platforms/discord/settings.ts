import { AppError } from '../../domain/errors.ts'
import type { SettingTable, ValuesOf } from '../descriptor.ts'
import { secret, url, userIds } from '../setting-rules.ts'

export const discordSettings = {
  botToken: { variable: 'DISCORD_BOT_TOKEN', rule: secret, about: "The bot's token." },
  allowedUsers: {
    variable: 'DISCORD_ALLOWED_USERS',
    rule: userIds,
    about: 'The IDs of the users who may use the bot.',
  },
  apiUrl: { variable: 'DISCORD_API_URL', rule: url, about: 'Another URL for the API, such as a proxy.' },
} as const satisfies SettingTable

export type DiscordSettings = ValuesOf<typeof discordSettings>

/** Validates the settings. Throws an error that names the first missing or invalid one. */
export const usableSettings = ({
  botToken,
  allowedUsers = [],
}: DiscordSettings): { readonly botToken: string; readonly allowedUsers: readonly string[] } => {
  if (botToken === undefined || !/^[\x21-\x7E]+$/.test(botToken)) {
    const problem = botToken === undefined ? 'no bot token configured' : 'the bot token has invalid characters'
    throw new AppError('config-invalid', problem, {
      remedy: 'set DISCORD_BOT_TOKEN to the token, without the word "Bot"',
    })
  }
  if (allowedUsers.length === 0) {
    throw new AppError('config-invalid', 'no allowed users configured', {
      remedy: 'list their user IDs in DISCORD_ALLOWED_USERS (right-click a user → Copy User ID)',
    })
  }
  return { botToken, allowedUsers }
}

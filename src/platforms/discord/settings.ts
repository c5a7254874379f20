import { AppError } from '../../domain/errors.ts'
import type { SettingTable, ValuesOf } from '../descriptor.ts'
import { secret, url, userIds } from '../setting-rules.ts'

export const discordSettings = {
  botToken: { variable: 'DISCORD_BOT_TOKEN', rule: secret, about: 'The token of the bot.' },
  allowedUsers: {
    variable: 'DISCORD_ALLOWED_USERS',
    rule: userIds,
    about: 'The ids of the users who may use the bot.',
  },
  apiUrl: { variable: 'DISCORD_API_URL', rule: url, about: 'Another address for the API, such as that of a proxy.' },
} as const satisfies SettingTable

export type DiscordSettings = ValuesOf<typeof discordSettings>

/** What is needed to begin. Throws an error that names the first setting that is missing or wrong. */
export const usableSettings = ({
  botToken,
  allowedUsers = [],
}: DiscordSettings): { readonly botToken: string; readonly allowedUsers: readonly string[] } => {
  if (botToken === undefined || !/^[\x21-\x7E]+$/.test(botToken)) {
    const problem = botToken === undefined ? 'there is no bot token' : 'the bot token has characters that no token has'
    throw new AppError('config-invalid', problem, {
      remedy: 'put the token alone, without the word "Bot", into DISCORD_BOT_TOKEN',
    })
  }
  if (allowedUsers.length === 0) {
    throw new AppError('config-invalid', 'nobody may speak to the bot', {
      remedy: 'list the user ids that may in DISCORD_ALLOWED_USERS (right-click a user → Copy User ID)',
    })
  }
  return { botToken, allowedUsers }
}

import {
  type Answer,
  asker,
  type Check,
  type CheckParts,
  listed,
  missing,
  no,
  type Request,
  said,
  type Verdict,
  yes,
} from '../checks.ts'
import type { DiscordSettings } from './settings.ts'

/** Is the token accepted, may messages be read, and who may give orders? */
export const checkDiscord = async (given: DiscordSettings, parts: CheckParts): Promise<readonly Check[]> => {
  const ask = asker(parts)
  const { botToken, allowedUsers = [], apiUrl = 'https://discord.com/api' } = given
  const get = (path: string, token: string): Request => ({
    url: `${apiUrl}/v10${path}`,
    headers: { authorization: `Bot ${token}` },
  })
  return [
    ...(botToken === undefined
      ? [missing('bot token', 'DISCORD_BOT_TOKEN')]
      : [
          await ask('bot token', get('/users/@me', botToken), discordBot),
          await ask('message content', get('/applications/@me', botToken), discordIntent),
        ]),
    listed(allowedUsers, 'DISCORD_ALLOWED_USERS', /^\d{5,25}$/, '123456789012345678'),
  ]
}

const discordBot = ({ status, body }: Answer): Verdict =>
  status === 200 ? yes(`is ${said(body['username'])}`) : no(`answered ${status}`, 'reset the token and copy it again')

/** The two flags of an application that may read what is written: granted, and granted while it is small. */
const MESSAGE_CONTENT = (1 << 18) | (1 << 19)

const discordIntent = ({ status, body }: Answer): Verdict =>
  status === 200 && (Number(body['flags'] ?? 0) & MESSAGE_CONTENT) !== 0
    ? yes('can be read')
    : no("can't be read", 'turn on Message Content Intent on the Bot page of the application')

import {
  type Response,
  createRequester,
  type Check,
  type CheckParts,
  checkAllowedUsers,
  missing,
  fail,
  type Request,
  textOf,
  type Verdict,
  pass,
} from '../checks.ts'
import { missingPermissions } from './permissions.ts'
import type { DiscordSettings } from './settings.ts'

/**
 * Checks that Discord accepts the token, that messages can be read, what the bot is permitted in each server, and that
 * users are allowed.
 */
export const checkDiscord = async (given: DiscordSettings, parts: CheckParts): Promise<readonly Check[]> => {
  const ask = createRequester(parts)
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
          await ask('permissions', get('/users/@me/guilds', botToken), permissionsIn),
        ]),
    checkAllowedUsers(allowedUsers, 'DISCORD_ALLOWED_USERS', /^\d{5,25}$/, '123456789012345678'),
  ]
}

const discordBot = ({ status, body }: Response): Verdict =>
  status === 200
    ? pass(`is ${textOf(body['username'])}`)
    : fail(`answered ${status}`, 'reset the token and copy it again')

/** The application flags that allow reading messages: granted, and granted while it is small. */
const MESSAGE_CONTENT = (1 << 18) | (1 << 19)

const discordIntent = ({ status, body }: Response): Verdict =>
  status === 200 && (Number(body['flags'] ?? 0) & MESSAGE_CONTENT) !== 0
    ? pass('can be read')
    : fail("can't be read", 'turn on Message Content Intent on the Bot page of the application')

const MOST_NAMED = 3

/** In the server as a whole; a channel may take some away. */
const permissionsIn = ({ status, items }: Response): Verdict => {
  if (status !== 200) return fail(`answered ${status}`, 'fix the bot token first')
  if (items.length === 0) return fail('the bot is in no server', 'add it with the URL from the setup steps')
  const lacking = items
    .map((guild) => ({ name: textOf(guild['name']), missing: missingPermissions(guild['permissions']) }))
    .filter(({ missing }) => missing.length > 0)
  if (lacking.length === 0) return pass(`complete in ${items.length === 1 ? '1 server' : `${items.length} servers`}`)
  const named = lacking.slice(0, MOST_NAMED).map(({ name, missing }) => `${name} lacks ${missing.join(', ')}`)
  const more = lacking.length > MOST_NAMED ? `; and ${lacking.length - MOST_NAMED} more` : ''
  return fail(
    named.join('; ') + more,
    "give them to the bot's role, or add the bot again with the URL from the setup steps",
  )
}

import {
  type Response,
  createRequester,
  type Check,
  type CheckParts,
  checkAllowedUsers,
  missing,
  fail,
  recordOf,
  textOf,
  type Verdict,
  pass,
} from '../checks.ts'
import type { TelegramSettings } from './settings.ts'

/** Checks that Telegram accepts the token and that users are allowed. */
export const checkTelegram = async (given: TelegramSettings, parts: CheckParts): Promise<readonly Check[]> => {
  const ask = createRequester(parts)
  const { botToken, webhookUrl, webhookSecret, allowedUsers = [], apiUrl = 'https://api.telegram.org' } = given
  return [
    botToken === undefined
      ? missing('bot token', 'TELEGRAM_BOT_TOKEN')
      : await ask('bot token', { url: `${apiUrl}/bot${botToken}/getMe` }, telegramBot),
    ...(webhookUrl !== undefined && webhookSecret === undefined
      ? [missing('webhook secret', 'TELEGRAM_WEBHOOK_SECRET')]
      : []),
    checkAllowedUsers(allowedUsers, 'TELEGRAM_ALLOWED_USERS', /^\d{1,20}$/, '123456789'),
  ]
}

const telegramBot = ({ body }: Response): Verdict => {
  if (body['ok'] !== true) return fail(textOf(body['description']), 'get the token from @BotFather again: /token')
  const bot = recordOf(body['result'])
  // In privacy mode mentions may not arrive; replies to the bot and commands with its name do.
  const privacyNote = bot['can_read_all_group_messages'] === false ? '; in groups, replies and /command@bot only' : ''
  return pass(`is @${textOf(bot['username'])}${privacyNote}`)
}

import {
  type Answer,
  asker,
  type Check,
  type CheckParts,
  listed,
  missing,
  no,
  recordOf,
  said,
  type Verdict,
  yes,
} from '../checks.ts'
import type { TelegramSettings } from './settings.ts'

/** Is the token accepted, and who may give orders? */
export const checkTelegram = async (given: TelegramSettings, parts: CheckParts): Promise<readonly Check[]> => {
  const ask = asker(parts)
  const { botToken, webhookUrl, webhookSecret, allowedUsers = [], apiUrl = 'https://api.telegram.org' } = given
  return [
    botToken === undefined
      ? missing('bot token', 'TELEGRAM_BOT_TOKEN')
      : await ask('bot token', { url: `${apiUrl}/bot${botToken}/getMe` }, telegramBot),
    ...(webhookUrl !== undefined && webhookSecret === undefined
      ? [missing('webhook secret', 'TELEGRAM_WEBHOOK_SECRET')]
      : []),
    listed(allowedUsers, 'TELEGRAM_ALLOWED_USERS', /^\d{1,20}$/, '123456789'),
  ]
}

const telegramBot = ({ body }: Answer): Verdict => {
  if (body['ok'] !== true) return no(said(body['description']), 'get the token from @BotFather again: /token')
  const bot = recordOf(body['result'])
  // With privacy mode a mention does not always arrive; what answers the bot and what names it as a command does.
  const hears = bot['can_read_all_group_messages'] === false ? '; in groups, replies and /command@bot only' : ''
  return yes(`is @${said(bot['username'])}${hears}`)
}

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
import { allowedUpdates } from './allowed-updates.ts'
import type { TelegramSettings } from './settings.ts'

/**
 * Checks that Telegram accepts the token, what the bot gets to see in groups, how updates arrive, and that users are
 * allowed.
 */
export const checkTelegram = async (given: TelegramSettings, parts: CheckParts): Promise<readonly Check[]> => {
  const ask = createRequester(parts)
  const { botToken, webhookUrl, webhookSecret, allowedUsers = [], apiUrl = 'https://api.telegram.org' } = given
  return [
    ...(botToken === undefined
      ? [missing('bot token', 'TELEGRAM_BOT_TOKEN')]
      : [
          await ask('bot token', { url: `${apiUrl}/bot${botToken}/getMe` }, telegramBot),
          await ask('updates', { url: `${apiUrl}/bot${botToken}/getWebhookInfo` }, (answer) =>
            updatesArrive(answer, webhookUrl, parts.clock()),
          ),
        ]),
    ...(webhookUrl !== undefined && webhookSecret === undefined
      ? [missing('webhook secret', 'TELEGRAM_WEBHOOK_SECRET')]
      : []),
    checkAllowedUsers(allowedUsers, 'TELEGRAM_ALLOWED_USERS', /^\d{1,20}$/, '123456789'),
  ]
}

const telegramBot = ({ body }: Response): Verdict => {
  if (body['ok'] !== true) return fail(textOf(body['description']), 'get the token from @BotFather again: /token')
  const bot = recordOf(body['result'])
  const isPrivate = bot['can_read_all_group_messages'] === false
  // In privacy mode mentions may not arrive, nor the rest of a long message.
  const privacyNote = isPrivate ? '; privacy mode is on: in groups, replies and commands only' : ''
  const groupNote = bot['can_join_groups'] === false ? "; can't be added to groups (/setjoingroups)" : ''
  return pass(`is @${textOf(bot['username'])}${groupNote === '' ? privacyNote : groupNote}`)
}

const RECENT_MS = 60 * 60_000

/** Polling and webhooks exclude each other; the server sets up whichever is configured when it starts. */
const updatesArrive = ({ body }: Response, wanted: string | undefined, now: number): Verdict => {
  if (body['ok'] !== true) return fail(textOf(body['description']), 'fix the bot token first')
  const info = recordOf(body['result'])
  const url = typeof info['url'] === 'string' ? info['url'] : ''
  if (wanted === undefined) {
    return pass(url === '' ? 'by polling' : 'by polling, once the server removes the current webhook when it starts')
  }
  if (url !== wanted) return pass('by webhook, once the server registers it when it starts')
  const failedAt = Number(info['last_error_date'] ?? 0) * 1000
  if (now - failedAt < RECENT_MS) {
    return fail(
      `Telegram couldn't deliver to the webhook: ${textOf(info['last_error_message'])}`,
      'check that Telegram can reach TELEGRAM_WEBHOOK_URL and that the server runs',
    )
  }
  const missingKinds = notRequested(info['allowed_updates'])
  return missingKinds.length === 0
    ? pass('by webhook')
    : fail(`the webhook doesn't get: ${missingKinds.join(', ')}`, 'restart the server, which registers it anew')
}

/** Without a list, Telegram sends these kinds too. */
const notRequested = (requested: unknown): string[] =>
  Array.isArray(requested) && requested.length > 0 ? allowedUpdates.filter((kind) => !requested.includes(kind)) : []

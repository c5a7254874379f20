import { AppError } from '../../domain/errors.ts'
import type { SettingTable, ValuesOf } from '../descriptor.ts'
import { secret, url, userIds } from '../setting-rules.ts'

export const telegramSettings = {
  botToken: { variable: 'TELEGRAM_BOT_TOKEN', rule: secret, about: 'The token that @BotFather gives.' },
  allowedUsers: {
    variable: 'TELEGRAM_ALLOWED_USERS',
    rule: userIds,
    about: 'The ids of the users who may use the bot.',
  },
  webhookUrl: {
    variable: 'TELEGRAM_WEBHOOK_URL',
    rule: url,
    about: 'https://<your server>/webhooks/telegram, to be called by Telegram instead of polling it.',
  },
  webhookSecret: { variable: 'TELEGRAM_WEBHOOK_SECRET', rule: secret, about: 'A secret of your own for the webhook.' },
  apiUrl: { variable: 'TELEGRAM_API_URL', rule: url, about: 'Another address for the API, such as that of a proxy.' },
} as const satisfies SettingTable

export type TelegramSettings = ValuesOf<typeof telegramSettings>

export type UsableSettings = {
  readonly botToken: string
  readonly allowedUsers: readonly string[]
  readonly apiUrl: string | undefined
  /** Telegram calls us there; undefined: we ask Telegram. */
  readonly webhook: { readonly url: string; readonly secret: string } | undefined
}

/** What is needed to begin. Throws an error that names the first setting that is missing or wrong. */
export const usableSettings = (given: TelegramSettings): UsableSettings => {
  const { botToken, allowedUsers = [], apiUrl, webhookUrl, webhookSecret } = given
  if (botToken === undefined || !/^\d+:[\w-]+$/.test(botToken)) {
    throw invalid(
      botToken === undefined ? 'Telegram has no bot token' : 'TELEGRAM_BOT_TOKEN is no bot token',
      'write /token to @BotFather and copy what it answers: 123456789:AA…',
    )
  }
  if (allowedUsers.length === 0) {
    throw invalid(
      'nobody may speak to the bot on Telegram',
      'list who may by numeric user id, which @userinfobot tells: TELEGRAM_ALLOWED_USERS=123456789',
    )
  }
  if (webhookUrl === undefined) return { botToken, allowedUsers, apiUrl, webhook: undefined }
  if (webhookSecret === undefined) {
    throw invalid('the webhook of Telegram has no secret', 'set TELEGRAM_WEBHOOK_SECRET: openssl rand -hex 32')
  }
  // Telegram takes no other characters.
  if (!/^[\w-]{1,256}$/.test(webhookSecret)) {
    throw invalid(
      'TELEGRAM_WEBHOOK_SECRET has characters that Telegram does not take',
      'use letters, digits, - and _ only: openssl rand -hex 32',
    )
  }
  return { botToken, allowedUsers, apiUrl, webhook: { url: webhookUrl, secret: webhookSecret } }
}

export const invalid = (message: string, remedy: string, cause?: unknown): AppError =>
  new AppError('config-invalid', message, { remedy, ...(cause !== undefined && { cause }) })

import { AppError } from '../../domain/errors.ts'
import type { SettingTable, ValuesOf } from '../descriptor.ts'
import { secret, url, userIds } from '../setting-rules.ts'

export const telegramSettings = {
  botToken: { variable: 'TELEGRAM_BOT_TOKEN', rule: secret, about: 'The token from @BotFather.' },
  allowedUsers: {
    variable: 'TELEGRAM_ALLOWED_USERS',
    rule: userIds,
    about: 'The IDs of the users who may use the bot.',
  },
  webhookUrl: {
    variable: 'TELEGRAM_WEBHOOK_URL',
    rule: url,
    about: 'https://<your server>/webhooks/telegram, for Telegram to call instead of being polled.',
  },
  webhookSecret: { variable: 'TELEGRAM_WEBHOOK_SECRET', rule: secret, about: 'A random secret for the webhook.' },
  apiUrl: { variable: 'TELEGRAM_API_URL', rule: url, about: 'Another URL for the API, such as a proxy.' },
} as const satisfies SettingTable

export type TelegramSettings = ValuesOf<typeof telegramSettings>

export type UsableSettings = {
  readonly botToken: string
  readonly allowedUsers: readonly string[]
  readonly apiUrl: string | undefined
  /** Telegram calls us there; undefined: we poll. */
  readonly webhook: { readonly url: string; readonly secret: string } | undefined
}

/** Validates the settings. Throws an error that names the first missing or invalid one. */
export const usableSettings = (given: TelegramSettings): UsableSettings => {
  const { botToken, allowedUsers = [], apiUrl, webhookUrl, webhookSecret } = given
  if (botToken === undefined || !/^\d+:[\w-]+$/.test(botToken)) {
    throw invalid(
      botToken === undefined ? 'no Telegram bot token configured' : "TELEGRAM_BOT_TOKEN isn't a bot token",
      'write /token to @BotFather and copy its reply: 123456789:AA…',
    )
  }
  if (allowedUsers.length === 0) {
    throw invalid(
      'no allowed users configured',
      'list their numeric user IDs, which @userinfobot shows: TELEGRAM_ALLOWED_USERS=123456789',
    )
  }
  if (webhookUrl === undefined) return { botToken, allowedUsers, apiUrl, webhook: undefined }
  if (webhookSecret === undefined) {
    throw invalid('the Telegram webhook has no secret', 'set TELEGRAM_WEBHOOK_SECRET: openssl rand -hex 32')
  }
  // Telegram's own rule.
  if (!/^[\w-]{1,256}$/.test(webhookSecret)) {
    throw invalid(
      'TELEGRAM_WEBHOOK_SECRET has characters that Telegram rejects',
      'use letters, digits, - and _ only: openssl rand -hex 32',
    )
  }
  return { botToken, allowedUsers, apiUrl, webhook: { url: webhookUrl, secret: webhookSecret } }
}

export const invalid = (message: string, remedy: string, cause?: unknown): AppError =>
  new AppError('config-invalid', message, { remedy, ...(cause !== undefined && { cause }) })

import { AppError } from '../../domain/errors.ts'
import type { SettingTable, ValuesOf } from '../descriptor.ts'
import { secret, url, userIds } from '../setting-rules.ts'

export const slackSettings = {
  botToken: { variable: 'SLACK_BOT_TOKEN', rule: secret, about: 'The Bot User OAuth Token (xoxb-…).' },
  appToken: { variable: 'SLACK_APP_TOKEN', rule: secret, about: 'The app-level token for Socket Mode (xapp-…).' },
  signingSecret: { variable: 'SLACK_SIGNING_SECRET', rule: secret, about: 'The signing secret, for events over HTTP.' },
  allowedUsers: {
    variable: 'SLACK_ALLOWED_USERS',
    rule: userIds,
    about: 'The IDs of the members who may use the bot.',
  },
  apiUrl: { variable: 'SLACK_API_URL', rule: url, about: 'Another URL for the API, such as a proxy.' },
} as const satisfies SettingTable

export type SlackSettings = ValuesOf<typeof slackSettings>

export type UsableSettings = {
  readonly botToken: string
  /** Socket Mode: we call Slack. */
  readonly appToken: string | undefined
  /** Signed HTTP: Slack calls us at /webhooks/slack. */
  readonly signingSecret: string | undefined
  readonly allowedUsers: readonly string[]
  readonly apiUrl: string | undefined
}

/** Validates the settings. Throws an error that names the first missing or invalid one. */
export const usableSettings = (given: SlackSettings): UsableSettings => {
  const { botToken, appToken, signingSecret, allowedUsers = [], apiUrl } = given
  if (botToken === undefined) {
    throw invalid('no Slack bot token configured', 'set SLACK_BOT_TOKEN to the token that starts with xoxb-')
  }
  if (botToken.startsWith('xapp-')) {
    throw invalid(
      'SLACK_BOT_TOKEN is an app-level token',
      'set SLACK_APP_TOKEN to it, and SLACK_BOT_TOKEN to the token that starts with xoxb-',
    )
  }
  if (appToken === undefined && signingSecret === undefined) {
    throw invalid(
      'no Slack connection configured',
      'set SLACK_APP_TOKEN for Socket Mode, or SLACK_SIGNING_SECRET for events over HTTP',
    )
  }
  if (appToken !== undefined && !appToken.startsWith('xapp-')) {
    throw invalid(
      "SLACK_APP_TOKEN isn't an app-level token",
      'create one with the scope connections:write; it starts with xapp-',
    )
  }
  if (allowedUsers.length === 0) {
    throw invalid('no allowed users configured', 'list their user IDs: SLACK_ALLOWED_USERS=U0123ABCD,U0456EFGH')
  }
  return { botToken, appToken, signingSecret, allowedUsers, apiUrl }
}

const invalid = (message: string, remedy: string): AppError => new AppError('config-invalid', message, { remedy })

import { AppError } from '../../domain/errors.ts'
import type { SettingTable, ValuesOf } from '../descriptor.ts'
import { secret, url, userIds } from '../setting-rules.ts'

export const slackSettings = {
  botToken: { variable: 'SLACK_BOT_TOKEN', rule: secret, about: 'The Bot User OAuth Token (xoxb-…).' },
  appToken: { variable: 'SLACK_APP_TOKEN', rule: secret, about: 'The app-level token for Socket Mode (xapp-…).' },
  signingSecret: { variable: 'SLACK_SIGNING_SECRET', rule: secret, about: 'The signing secret, for events by HTTP.' },
  allowedUsers: {
    variable: 'SLACK_ALLOWED_USERS',
    rule: userIds,
    about: 'The ids of the members who may use the bot.',
  },
  apiUrl: { variable: 'SLACK_API_URL', rule: url, about: 'Another address for the API, such as that of a proxy.' },
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

/** What is needed to begin. Throws an error that names the first setting that is missing or wrong. */
export const usableSettings = (given: SlackSettings): UsableSettings => {
  const { botToken, appToken, signingSecret, allowedUsers = [], apiUrl } = given
  if (botToken === undefined) {
    throw invalid('Slack has no bot token', 'set SLACK_BOT_TOKEN to the one that begins with xoxb-')
  }
  if (botToken.startsWith('xapp-')) {
    throw invalid('SLACK_BOT_TOKEN is an app-level token', 'put it into SLACK_APP_TOKEN, and the one with xoxb- here')
  }
  if (appToken === undefined && signingSecret === undefined) {
    throw invalid(
      'Slack has no way to reach us',
      'set SLACK_APP_TOKEN for Socket Mode, or SLACK_SIGNING_SECRET for events by HTTP',
    )
  }
  if (appToken !== undefined && !appToken.startsWith('xapp-')) {
    throw invalid(
      'SLACK_APP_TOKEN is no app-level token',
      'make one with the scope connections:write: it begins with xapp-',
    )
  }
  if (allowedUsers.length === 0) {
    throw invalid(
      'nobody may speak to the bot in Slack',
      'list who may by user id: SLACK_ALLOWED_USERS=U0123ABCD,U0456EFGH',
    )
  }
  return { botToken, appToken, signingSecret, allowedUsers, apiUrl }
}

const invalid = (message: string, remedy: string): AppError => new AppError('config-invalid', message, { remedy })

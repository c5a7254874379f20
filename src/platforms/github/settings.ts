import { AppError } from '../../domain/errors.ts'
import * as rule from '../../domain/config/rules.ts'
import type { SettingTable, ValuesOf } from '../descriptor.ts'
import { flag, privateKey, secret, url, userIds } from '../setting-rules.ts'

export const githubSettings = {
  token: {
    variable: 'GITHUB_TOKEN',
    rule: secret,
    about: 'A token for the bot and for git, unless you use a GitHub App.',
  },
  appId: {
    variable: 'GITHUB_APP_ID',
    rule: rule.mapped(rule.wholeNumber(1, 2 ** 53 - 1, 12_345), String),
    about: 'The ID of the GitHub App.',
  },
  privateKey: {
    variable: 'GITHUB_APP_PRIVATE_KEY',
    rule: privateKey,
    about: 'The private key of the GitHub App (-----BEGIN …).',
  },
  webhookSecret: { variable: 'GITHUB_WEBHOOK_SECRET', rule: secret, about: "The webhook's secret." },
  bot: { variable: 'GITHUB_BOT', rule: rule.text, about: "The name to mention (default: the account's or app's own)." },
  allowedUsers: {
    variable: 'GITHUB_ALLOWED_USERS',
    rule: userIds,
    about: 'Users who may use the bot, besides those with write access to the repository.',
  },
  cloneUnknown: {
    variable: 'GITHUB_CLONE_UNKNOWN',
    rule: flag,
    about: "Whether to clone a repository that isn't registered when the bot is first mentioned there.",
  },
  apiUrl: { variable: 'GITHUB_API_URL', rule: url, about: 'The API URL of a GitHub Enterprise Server.' },
} as const satisfies SettingTable

export type GithubSettings = ValuesOf<typeof githubSettings>

export const isApp = ({ appId, privateKey }: GithubSettings): boolean => appId !== undefined && privateKey !== undefined

/** Enough to ask GitHub something, with or without a bot. */
export const hasCredentials = (settings: GithubSettings): boolean => settings.token !== undefined || isApp(settings)

/** Throws an error that names the first missing setting. */
export const usableSettings = (settings: GithubSettings): { readonly webhookSecret: string } => {
  const { webhookSecret } = settings
  if (webhookSecret === undefined) {
    throw new AppError('config-invalid', 'no GitHub webhook secret configured', {
      remedy: "set GITHUB_WEBHOOK_SECRET to the webhook's secret",
    })
  }
  credentialsOf(settings)
  return { webhookSecret }
}

export type GithubCredentials = { readonly appId: string; readonly privateKey: string } | { readonly token: string }

/** The app's, if there is one. Throws an error that names what is missing. */
export const credentialsOf = ({ token, appId, privateKey }: GithubSettings): GithubCredentials => {
  if (appId !== undefined && privateKey !== undefined) return { appId, privateKey }
  if (appId !== undefined || privateKey !== undefined) {
    throw new AppError('config-invalid', 'the GitHub App needs both its ID and its private key', {
      remedy: 'set both GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY, or use GITHUB_TOKEN',
    })
  }
  if (token !== undefined) return { token }
  throw new AppError('config-invalid', 'no GitHub credentials configured', {
    remedy: 'set GITHUB_TOKEN, or GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY',
  })
}

import { isAnySet, type PlatformDescriptor } from '../descriptor.ts'
import { checkGithub } from './check.ts'
import { numberOf } from './conversation-id.ts'
import { githubSettings, usableSettings } from './settings.ts'

export const github: PlatformDescriptor<typeof githubSettings> = {
  settings: githubSettings,
  title: 'GitHub',
  guide: {
    steps: [
      'Create an account for the bot, or a GitHub App (Settings → Developer settings → GitHub Apps).',
      'Token: a fine-grained one for the repositories, with Issues: read and write, Pull requests: read and write, Contents: read and write, Metadata: read. An app gets the same permissions.',
      'Webhook: https://<your server>/webhooks/github, content type application/json, with a random secret (openssl rand -hex 32).',
      'Events: Issues, Issue comments, Pull requests, Pull request reviews, Pull request review comments.',
      'Register the repository: coppice codebase add https://github.com/<owner>/<name>, or set GITHUB_CLONE_UNKNOWN=true.',
      'Name: set GITHUB_BOT to the name that people mention. With a token of your own, choose one that is not yours.',
      'Set the settings below, and start the server (coppice serve).',
      'Mention the bot in an issue: @<bot> fix this.',
    ],
  },
  capabilities: { reach: 'repository', persistent: false, numberOf },
  /** Credentials alone are for git and pull requests, and don't mean a bot. */
  isConfigured: ({ webhookSecret, bot, allowedUsers, cloneUnknown }) =>
    isAnySet(webhookSecret, bot, allowedUsers, cloneUnknown),
  validate: usableSettings,
  check: checkGithub,
  create: async (settings, parts) => (await import('./platform.ts')).createGithubPlatform(settings, parts),
}

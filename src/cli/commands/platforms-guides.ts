import type { RemotePlatformName } from '../../platforms/settings.ts'
import { slackEvents, slackManifest, slackScopes } from '../../platforms/slack/setup.ts'

/** How one gets from nothing to the settings of a platform, in words to be printed. */
export type Guide = {
  readonly steps: readonly string[]
  /** Something to paste, whole. */
  readonly paste?: { readonly what: string; readonly text: string }
  readonly settings: readonly { readonly variable: string; readonly key: string; readonly what: string }[]
}

export const guides: Record<RemotePlatformName, Guide> = {
  github: {
    steps: [
      'Make an account for the bot, or a GitHub App (Settings → Developer settings → GitHub Apps).',
      'Token: a fine-grained one for the repositories, with Issues: read and write, Pull requests: read and write, Contents: read and write, Metadata: read. An app gets the same permissions.',
      'Webhook: https://<your server>/webhooks/github, content type application/json, with a secret of your own (openssl rand -hex 32).',
      'Events: Issues, Issue comments, Pull requests, Pull request reviews, Pull request review comments.',
      'Register the repository: coppice codebase add https://github.com/<owner>/<name>, or set GITHUB_CLONE_UNKNOWN=true.',
      'Mention it in an issue: @<bot> fix this.',
    ],
    settings: [
      { variable: 'GITHUB_TOKEN', key: 'token', what: 'the token, unless it is an app' },
      { variable: 'GITHUB_APP_ID', key: 'appId', what: 'of the app' },
      { variable: 'GITHUB_APP_PRIVATE_KEY', key: 'privateKey', what: 'of the app, -----BEGIN …' },
      { variable: 'GITHUB_WEBHOOK_SECRET', key: 'webhookSecret', what: 'the secret of the webhook' },
      { variable: 'GITHUB_BOT', key: 'bot', what: 'the name it is mentioned by, if not its own' },
      {
        variable: 'GITHUB_ALLOWED_USERS',
        key: 'allowedUsers',
        what: 'who may speak beside those with write permission',
      },
      {
        variable: 'GITHUB_CLONE_UNKNOWN',
        key: 'cloneUnknown',
        what: 'true: clone a repository that is not registered when it is first spoken of',
      },
      { variable: 'GITHUB_API_URL', key: 'apiUrl', what: 'for GitHub Enterprise Server' },
    ],
  },
  slack: {
    steps: [
      'Open https://api.slack.com/apps → Create New App → From a manifest, and paste the manifest below.',
      `It asks for these bot scopes: ${slackScopes.join(', ')}; and these events: ${slackEvents.join(', ')}.`,
      'Install App → Install to Workspace, and copy the Bot User OAuth Token (xoxb-…).',
      'Socket Mode: Basic Information → App-Level Tokens → Generate, with the scope connections:write (xapp-…). Instead, for events by HTTP: turn Socket Mode off, set the Request URL to https://<your server>/webhooks/slack, and copy the Signing Secret.',
      'Who may speak: in Slack, a profile → ⋮ → Copy member ID (U…).',
      'Invite it into a channel (/invite @coppice) and mention it: @coppice fix this.',
    ],
    paste: { what: 'manifest', text: JSON.stringify(slackManifest, undefined, 2) },
    settings: [
      { variable: 'SLACK_BOT_TOKEN', key: 'botToken', what: 'xoxb-…' },
      { variable: 'SLACK_APP_TOKEN', key: 'appToken', what: 'xapp-…, for Socket Mode' },
      { variable: 'SLACK_SIGNING_SECRET', key: 'signingSecret', what: 'for events by HTTP' },
      { variable: 'SLACK_ALLOWED_USERS', key: 'allowedUsers', what: 'who may speak, by member id' },
    ],
  },
  discord: {
    steps: [
      'Open https://discord.com/developers/applications → New Application → Bot.',
      'On the Bot page: Reset Token and copy it; turn on Message Content Intent.',
      'OAuth2 → URL Generator: scopes bot and applications.commands; permissions View Channels, Send Messages, Create Public Threads, Send Messages in Threads, Read Message History. Open the address and add it to your server.',
      'Who may speak: turn on Developer Mode (Settings → Advanced), then right-click somebody → Copy User ID.',
      'Mention it: @coppice fix this.',
    ],
    settings: [
      { variable: 'DISCORD_BOT_TOKEN', key: 'botToken', what: 'of the bot' },
      { variable: 'DISCORD_ALLOWED_USERS', key: 'allowedUsers', what: 'who may speak, by user id' },
    ],
  },
  telegram: {
    steps: [
      'Write /newbot to @BotFather and copy the token.',
      'For groups: /setprivacy at @BotFather → Disable, then add it to the group. Otherwise Telegram shows it replies and /command@bot, and mentions not always. It answers only what is addressed to it either way.',
      'Who may speak: write to @userinfobot, which answers your user id; or write to the bot, and the log has it.',
      'Nothing else is needed: it asks Telegram for messages. For a webhook instead set an https address and a secret of your own (openssl rand -hex 32).',
      'Write to it: fix this. In a group: @<bot> fix this.',
    ],
    settings: [
      { variable: 'TELEGRAM_BOT_TOKEN', key: 'botToken', what: 'from @BotFather' },
      { variable: 'TELEGRAM_ALLOWED_USERS', key: 'allowedUsers', what: 'who may speak, by user id' },
      {
        variable: 'TELEGRAM_WEBHOOK_URL',
        key: 'webhookUrl',
        what: 'https://<your server>/webhooks/telegram, instead of asking',
      },
      { variable: 'TELEGRAM_WEBHOOK_SECRET', key: 'webhookSecret', what: 'with the address' },
    ],
  },
}

export const isRemotePlatform = (name: string): name is RemotePlatformName => Object.hasOwn(guides, name)

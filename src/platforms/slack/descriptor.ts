import { isAnySet, type PlatformDescriptor } from '../descriptor.ts'
import { checkSlack } from './check.ts'
import { slackSettings, usableSettings } from './settings.ts'
import { slackEvents, slackManifest, slackScopes } from './setup.ts'

export const slack: PlatformDescriptor<typeof slackSettings> = {
  settings: slackSettings,
  title: 'Slack',
  guide: {
    steps: [
      'Open https://api.slack.com/apps → Create New App → From a manifest, and paste the manifest below.',
      `It requests these bot scopes: ${slackScopes.join(', ')}; and these events: ${slackEvents.join(', ')}. It also turns on buttons and the slash command /coppice.`,
      'Install App → Install to Workspace, and copy the Bot User OAuth Token (xoxb-…).',
      'Socket Mode: Basic Information → App-Level Tokens → Generate, with the scope connections:write (xapp-…). Over HTTP instead: turn off Socket Mode, set the Request URL of Event Subscriptions, of Interactivity and of the slash command to https://<your server>/webhooks/slack, and copy the Signing Secret.',
      'Allowed users: in Slack, open a profile → ⋮ → Copy member ID (U…).',
      'Register a repository (coppice codebase add <path or URL>), set the settings below, and start the server (coppice serve).',
      'Invite the bot to a channel (/invite @coppice) and mention it: @coppice fix this.',
    ],
    paste: { what: 'manifest', text: JSON.stringify(slackManifest, undefined, 2) },
  },
  capabilities: { reach: 'server', persistent: false },
  isConfigured: ({ botToken, appToken, signingSecret, allowedUsers }) =>
    isAnySet(botToken, appToken, signingSecret, allowedUsers),
  validate: usableSettings,
  check: checkSlack,
  create: async (settings, parts) => (await import('./platform.ts')).createSlackPlatform(settings, parts),
}

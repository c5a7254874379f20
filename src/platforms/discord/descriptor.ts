import { isAnySet, type PlatformDescriptor } from '../descriptor.ts'
import { checkDiscord } from './check.ts'
import { threadIdOf } from './conversation-id.ts'
import { usedPermissions } from './permissions.ts'
import { discordSettings, usableSettings } from './settings.ts'

export const discord: PlatformDescriptor<typeof discordSettings> = {
  settings: discordSettings,
  title: 'Discord',
  guide: {
    steps: [
      'Open https://discord.com/developers/applications → New Application → Bot.',
      'On the Bot page: Reset Token and copy it; turn on Message Content Intent.',
      `OAuth2 → URL Generator: scopes bot and applications.commands; permissions ${usedPermissions.join(', ')}. Open the generated URL and add the bot to your server.`,
      'Allowed users: turn on Developer Mode (Settings → Advanced), then right-click a user → Copy User ID.',
      'Register a repository (coppice codebase add <path or URL>), set the settings below, and start the server (coppice serve).',
      'Mention the bot: @coppice fix this.',
    ],
  },
  capabilities: { reach: 'server', persistent: false, threadIdOf },
  isConfigured: ({ botToken, allowedUsers }) => isAnySet(botToken, allowedUsers),
  validate: usableSettings,
  check: checkDiscord,
  create: async (settings, parts) => (await import('./platform.ts')).createDiscordPlatform(settings, parts),
}

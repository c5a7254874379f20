import { isAnySet, type PlatformDescriptor } from '../descriptor.ts'
import { checkTelegram } from './check.ts'
import { telegramSettings, usableSettings } from './settings.ts'

export const telegram: PlatformDescriptor<typeof telegramSettings> = {
  settings: telegramSettings,
  title: 'Telegram',
  guide: {
    steps: [
      'Write /newbot to @BotFather and copy the token.',
      'For groups: /setprivacy at @BotFather → Disable, then add the bot to the group. With privacy mode on, the bot may miss mentions. Either way, it only answers what is addressed to it.',
      'Allowed users: write to @userinfobot, which replies with your user ID; or write to your bot, and look for the ID in the log.',
      'Coppice polls Telegram for messages. To use a webhook instead, set an https URL and a random secret (openssl rand -hex 32).',
      'Register a repository (coppice codebase add <path or URL>), set the settings below, and start the server (coppice serve).',
      'Send the bot a message: fix this. In a group: @<bot> fix this.',
    ],
  },
  capabilities: { reach: 'server', persistent: true },
  isConfigured: ({ botToken, allowedUsers, webhookUrl, webhookSecret }) =>
    isAnySet(botToken, allowedUsers, webhookUrl, webhookSecret),
  validate: usableSettings,
  check: checkTelegram,
  create: async (settings, parts) => (await import('./platform.ts')).createTelegramPlatform(settings, parts),
}

import type { PlatformDescriptor } from '../descriptor.ts'
import { checkTelegram } from './check.ts'
import { telegramSettings } from './settings.ts'

export const telegram: PlatformDescriptor<typeof telegramSettings> = {
  settings: telegramSettings,
  guide: {
    steps: [
      'Write /newbot to @BotFather and copy the token.',
      'For groups: /setprivacy at @BotFather → Disable, then add it to the group. Otherwise Telegram shows it replies and /command@bot, and mentions not always. It answers only what is addressed to it either way.',
      'Who may speak: write to @userinfobot, which answers your user id; or write to the bot, and the log has it.',
      'Nothing else is needed: it asks Telegram for messages. For a webhook instead set an https address and a secret of your own (openssl rand -hex 32).',
      'Write to it: fix this. In a group: @<bot> fix this.',
    ],
  },
  capabilities: { reach: 'server', persistent: true },
  isConfigured: ({ botToken }) => botToken !== undefined,
  check: checkTelegram,
  make: async (settings, parts) => (await import('./platform.ts')).createTelegramPlatform(settings, parts),
}

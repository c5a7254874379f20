/** The scopes the bot token needs: to be mentioned, to reply, and to read its threads. */
export const slackScopes = [
  'app_mentions:read',
  'chat:write',
  'channels:history',
  'groups:history',
  'im:history',
  'mpim:history',
] as const

/** The events we subscribe to. No others: a channel's other messages are none of our business. */
export const slackEvents = ['app_mention', 'message.im'] as const

/** Paste into "Create an app from a manifest" to set everything at once. */
export const slackManifest = {
  display_information: { name: 'Coppice', description: 'An isolated git worktree for every thread' },
  features: {
    app_home: { home_tab_enabled: false, messages_tab_enabled: true, messages_tab_read_only_enabled: false },
    bot_user: { display_name: 'coppice', always_online: true },
  },
  oauth_config: { scopes: { bot: slackScopes } },
  settings: {
    event_subscriptions: { bot_events: slackEvents },
    interactivity: { is_enabled: false },
    org_deploy_enabled: false,
    socket_mode_enabled: true,
    token_rotation_enabled: false,
  },
} as const

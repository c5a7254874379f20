/** What the bot token needs, each for something: being mentioned, answering, reading what was said in its threads. */
export const slackScopes = [
  'app_mentions:read',
  'chat:write',
  'channels:history',
  'groups:history',
  'im:history',
  'mpim:history',
] as const

/** What Slack tells us of. Nothing more: other messages of a channel are none of our business. */
export const slackEvents = ['app_mention', 'message.im'] as const

/** Pasted into "Create an app from a manifest", it sets all of it at once. */
export const slackManifest = {
  display_information: { name: 'Coppice', description: 'An isolated branch and an answer for every thread' },
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

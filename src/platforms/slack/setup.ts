/** The scopes the bot token needs, and what for. */
const uses = {
  'app_mentions:read': 'receiving mentions',
  'chat:write': 'replying, and editing the preview of a reply',
  commands: 'the slash command /coppice',
  'files:read': 'files attached to a message, and long pastes',
  'reactions:write': 'the reaction that shows that a message arrived',
  'channels:history': 'threads in public channels',
  'groups:history': 'threads in private channels',
  'im:history': 'direct messages',
  'mpim:history': 'threads in group messages',
  'channels:read': 'finding missed messages in public channels',
  'groups:read': 'finding missed messages in private channels',
  'im:read': 'finding missed direct messages',
  'mpim:read': 'finding missed messages in group messages',
} as const

export type SlackScope = keyof typeof uses

export const slackScopes = Object.keys(uses) as readonly SlackScope[]

export const useOf = (scope: SlackScope): string => uses[scope]

/** The events we subscribe to. No others: a channel's other messages are none of our business. */
export const slackEvents = ['app_mention', 'message.im'] as const

/** Paste into "Create an app from a manifest" to set everything at once. */
export const slackManifest = {
  display_information: { name: 'Coppice', description: 'An isolated git worktree for every thread' },
  features: {
    app_home: { home_tab_enabled: false, messages_tab_enabled: true, messages_tab_read_only_enabled: false },
    bot_user: { display_name: 'coppice', always_online: true },
    slash_commands: [
      {
        command: '/coppice',
        description: 'Send a command to your latest thread in this channel',
        usage_hint: 'stop | allow | deny | status | help',
        should_escape: false,
      },
    ],
  },
  oauth_config: { scopes: { bot: slackScopes } },
  settings: {
    event_subscriptions: { bot_events: slackEvents },
    interactivity: { is_enabled: true },
    org_deploy_enabled: false,
    socket_mode_enabled: true,
    token_rotation_enabled: false,
  },
} as const

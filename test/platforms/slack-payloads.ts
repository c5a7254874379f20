import { createHmac } from 'node:crypto'

/* What Slack sends, in its own words. */

export const BOT = { user: 'U0BOT', bot: 'B0BOT', team: 'T0TEAM', name: 'coppice' }

export type Posted = {
  readonly channel: string
  readonly ts: string
  readonly thread_ts: string | undefined
  readonly user: string
  text: string
  metadata: unknown
  attachments?: unknown
  blocks?: unknown
  files?: unknown
  bot_id?: string
  subtype?: string
}

/** A mention in a channel or a direct message, as the Events API delivers it. */
export const mentionOf = (said: Posted, eventId: string, more: Record<string, unknown> = {}): unknown => ({
  type: 'event_callback',
  team_id: BOT.team,
  api_app_id: 'A0APP',
  event_id: eventId,
  event_time: Math.floor(Number(said.ts)),
  authorizations: [{ team_id: BOT.team, user_id: BOT.user, is_bot: true, is_enterprise_install: false }],
  event: {
    type: said.channel.startsWith('D') ? 'message' : 'app_mention',
    ...(said.channel.startsWith('D') && { channel_type: 'im' }),
    user: said.user,
    text: said.text,
    ts: said.ts,
    event_ts: said.ts,
    channel: said.channel,
    team: BOT.team,
    ...(said.thread_ts !== undefined && { thread_ts: said.thread_ts }),
    ...(said.files !== undefined && { files: said.files }),
    ...(said.attachments !== undefined && { attachments: said.attachments }),
    ...(said.subtype !== undefined && { subtype: said.subtype }),
    ...more,
  },
})

/** reference/interaction-payloads/block_actions-payload: a press of a button in one of our messages. */
export const pressOf = (message: Posted, label: string, user: string, more: Record<string, unknown> = {}): unknown => {
  const blocks = (message.attachments as readonly { readonly blocks: readonly Block[] }[]).flatMap((one) => one.blocks)
  const block = blocks.find(({ elements }) => elements.some(({ text }) => text.text === label))
  const element = block?.elements.find(({ text }) => text.text === label)
  if (block === undefined || element === undefined) throw new Error(`there is no button ${label}`)
  return {
    type: 'block_actions',
    api_app_id: 'A0APP',
    token: 'verification-token',
    user: { id: user, username: user.toLowerCase(), team_id: BOT.team },
    team: { id: BOT.team, domain: 'team' },
    channel: { id: message.channel, name: 'dev' },
    container: { type: 'message_attachment', message_ts: message.ts, channel_id: message.channel, is_ephemeral: false },
    trigger_id: `${message.ts}.press`,
    response_url: 'https://hooks.slack.com/actions/unused',
    message: { type: 'message', bot_id: BOT.bot, ...message },
    actions: [{ ...element, block_id: block.block_id, action_ts: '1712349999.000100' }],
    ...more,
  }
}

type Block = {
  readonly block_id: string
  readonly elements: readonly { readonly text: { readonly text: string }; readonly value: string }[]
}

/** interactivity/implementing-slash-commands: no thread, whichever thread it was typed in. */
export const slashOf = (
  channel: string,
  user: string,
  text: string,
  more: Record<string, string> = {},
): Record<string, string> => ({
  token: 'verification-token',
  command: '/coppice',
  text,
  user_id: user,
  user_name: user.toLowerCase(),
  team_id: BOT.team,
  team_domain: 'team',
  channel_id: channel,
  channel_name: 'dev',
  api_app_id: 'A0APP',
  response_url: 'https://hooks.slack.com/commands/unused',
  trigger_id: `13345224609.738474920.${text}`,
  ...more,
})

/** Signed as Slack signs what it posts. A text is a form's. */
export const signedRequest = (
  payload: unknown,
  secret: string,
  at = Date.now(),
): { readonly headers: Record<string, string>; readonly body: Uint8Array<ArrayBuffer> } => {
  const body = new TextEncoder().encode(typeof payload === 'string' ? payload : JSON.stringify(payload))
  const timestamp = String(Math.floor(at / 1000))
  const mac = createHmac('sha256', secret).update(`v0:${timestamp}:`).update(body).digest('hex')
  const type = { 'content-type': 'application/json' }
  return { headers: { ...type, 'x-slack-request-timestamp': timestamp, 'x-slack-signature': `v0=${mac}` }, body }
}

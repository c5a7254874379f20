import { mentions, toPlainText, withoutLeadingMention } from './text.ts'

/** Our identity on Slack. */
export type SlackSelf = {
  readonly teamId: string
  /** Our workspace's organisation, if any: user IDs are unique within it. */
  readonly enterpriseId: string | undefined
  readonly userId: string
  readonly botId: string | undefined
  readonly name: string
}

/** A message for us. Whether its author is allowed is decided elsewhere. */
export type SlackMessage = {
  readonly deliveryId: string
  readonly channel: string
  /** The message's own; equal to `threadTs` if it starts the thread. */
  readonly ts: string
  readonly threadTs: string
  readonly user: string
  /** The author's workspace, if it isn't ours. */
  readonly foreignTeam: string | undefined
  readonly text: string
}

export type Parsed = { readonly message: SlackMessage } | { readonly ignored: string }

/**
 * Parses an Events API delivery into a message for us, or the reason why it is ignored. Accepts a mention anywhere and
 * any direct message; only as first written; never from a bot, least of all ourselves.
 */
export const parseEvent = (body: unknown, self: SlackSelf): Parsed => {
  const envelope = recordOf(body)
  const event = recordOf(envelope['event'])
  const [type, channel, ts, user] = [event['type'], event['channel'], event['ts'], event['user']]
  const deliveryId = envelope['event_id']
  if (envelope['type'] !== 'event_callback' || (type !== 'app_mention' && type !== 'message')) {
    return { ignored: 'not a message' }
  }
  if (!isId(deliveryId) || !isId(channel) || !isTimestamp(ts)) return { ignored: 'incomplete' }
  if (isChange(event)) return { ignored: 'edited, deleted or a service message' }
  if (event['bot_id'] !== undefined || event['bot_profile'] !== undefined) return { ignored: 'written by a bot' }
  if (!isId(user)) return { ignored: 'without an author' }
  if (user === self.userId) return { ignored: 'our own message' }
  const written = typeof event['text'] === 'string' ? event['text'] : ''
  const isDirect = channel.startsWith('D')
  // A direct message arrives as `message` too, and would count twice; in a channel only mentions are for us.
  if (isDirect !== (type === 'message')) return { ignored: 'not addressed to us' }
  if (!isDirect && !mentions(written, self.userId)) return { ignored: 'mentioned only in code or in a quote' }
  const text = toPlainText(withoutLeadingMention(written, self.userId), new Map([[self.userId, self.name]])).trim()
  if (text === '') return { ignored: 'without text' }
  const threadTs = isTimestamp(event['thread_ts']) ? event['thread_ts'] : ts
  return { message: { deliveryId, channel, ts, threadTs, user, foreignTeam: foreignTeamOf(event, self), text } }
}

/**
 * `C0123:1712345678.000100`: the thread, named by its first message. But a repository is chosen for the channel itself,
 * and every thread started in it from then on inherits it.
 */
export const conversationIdOf = ({
  channel,
  ts,
  threadTs,
  text,
}: Pick<SlackMessage, 'channel' | 'ts' | 'threadTs' | 'text'>): string =>
  ts === threadTs && /^\/(?:codebase|clone)(?:\s|$)/.test(text) ? channel : `${channel}:${threadTs}`

/** Without a thread: the channel itself. */
export const threadOf = (conversationId: string): ChatAddress | undefined => {
  const [, channel, threadTs] = /^([A-Z0-9]{2,30})(?::(\d{1,12}\.\d{1,9}))?$/.exec(conversationId) ?? []
  return channel === undefined ? undefined : { channel, threadTs }
}

export type ChatAddress = { readonly channel: string; readonly threadTs: string | undefined }

/** A file with text, or a reply also shown in the channel, counts as a message. */
const messageSubtypes: readonly unknown[] = [undefined, 'file_share', 'thread_broadcast']

/** An edit that adds a mention arrives as a mention with `edited`. */
const isChange = (event: Readonly<Record<string, unknown>>): boolean =>
  !messageSubtypes.includes(event['subtype']) || event['edited'] !== undefined || event['hidden'] === true

/**
 * A user ID is unique only within its workspace, and a shared channel has users from several. `user_team` is the
 * author's own; the others say the same for older messages.
 */
const foreignTeamOf = (
  event: Readonly<Record<string, unknown>>,
  { teamId, enterpriseId }: SlackSelf,
): string | undefined => {
  const home = [event['user_team'], event['source_team'], event['team']].find((team) => isId(team))
  return home === teamId || home === enterpriseId ? undefined : home
}

const recordOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}

const isId = (value: unknown): value is string => typeof value === 'string' && /^[A-Za-z0-9]{2,64}$/.test(value)

const isTimestamp = (value: unknown): value is string => typeof value === 'string' && /^\d{1,12}\.\d{1,9}$/.test(value)

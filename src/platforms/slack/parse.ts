import { mentions, toPlainText, withoutCall } from './text.ts'

/** Ourselves, as Slack knows us. */
export type SlackSelf = {
  readonly teamId: string
  /** The organisation that our workspace is part of, if it is: user ids are unique in all of it. */
  readonly enterpriseId: string | undefined
  readonly userId: string
  readonly botId: string | undefined
  readonly name: string
}

/** A message that is meant for us. Whether its author is allowed is decided elsewhere. */
export type SlackMessage = {
  readonly deliveryId: string
  readonly channel: string
  /** Of the message itself; where it is the first of its thread, both are the same. */
  readonly ts: string
  readonly threadTs: string
  readonly user: string
  /** Where the author belongs, if that is another workspace than ours. */
  readonly foreignTeam: string | undefined
  readonly text: string
}

export type Parsed = { readonly message: SlackMessage } | { readonly ignored: string }

/**
 * What Slack's Events API delivered, as a message for us or the reason why it is none. A mention anywhere, or any
 * message in a direct conversation; only as it was first written; never by a bot, least of all by ourselves.
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
  if (isChange(event)) return { ignored: 'an edited, deleted or service message is no order' }
  if (event['bot_id'] !== undefined || event['bot_profile'] !== undefined) return { ignored: 'said by a bot' }
  if (!isId(user)) return { ignored: 'nobody said it' }
  if (user === self.userId) return { ignored: 'said by ourselves' }
  const written = typeof event['text'] === 'string' ? event['text'] : ''
  const isDirect = channel.startsWith('D')
  // A direct message comes as `message` and would come twice otherwise; in a channel only the mention is for us.
  if (isDirect !== (type === 'message')) return { ignored: 'not addressed to us' }
  if (!isDirect && !mentions(written, self.userId)) return { ignored: 'mentioned in code or in a quotation only' }
  const text = toPlainText(withoutCall(written, self.userId), new Map([[self.userId, self.name]])).trim()
  if (text === '') return { ignored: 'without words' }
  const threadTs = isTimestamp(event['thread_ts']) ? event['thread_ts'] : ts
  return { message: { deliveryId, channel, ts, threadTs, user, foreignTeam: foreignTeamOf(event, self), text } }
}

/**
 * `C0123:1712345678.000100`: the thread, named by its first message. But which repository a channel is about is said of
 * the channel itself, and every thread begun in it from then on takes it over.
 */
export const conversationIdOf = ({
  channel,
  ts,
  threadTs,
  text,
}: Pick<SlackMessage, 'channel' | 'ts' | 'threadTs' | 'text'>): string =>
  ts === threadTs && /^\/(?:codebase|clone)(?:\s|$)/.test(text) ? channel : `${channel}:${threadTs}`

/** Without a thread it is the channel itself. */
export const threadOf = (conversationId: string): Place | undefined => {
  const [, channel, threadTs] = /^([A-Z0-9]{2,30})(?::(\d{1,12}\.\d{1,9}))?$/.exec(conversationId) ?? []
  return channel === undefined ? undefined : { channel, threadTs }
}

export type Place = { readonly channel: string; readonly threadTs: string | undefined }

/** A file with words beside it, or a reply that is also shown in the channel, is said by a person like any other. */
const spoken: readonly unknown[] = [undefined, 'file_share', 'thread_broadcast']

/** An edit that adds a mention comes as a mention with `edited`. */
const isChange = (event: Readonly<Record<string, unknown>>): boolean =>
  !spoken.includes(event['subtype']) || event['edited'] !== undefined || event['hidden'] === true

/**
 * A user id is unique within its workspace only, and a shared channel has people of several. `user_team` is where the
 * author is at home; the others say the same for older messages.
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

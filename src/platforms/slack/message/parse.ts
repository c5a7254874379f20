/*
 * What a Slack message says. In: Slack's JSON, unchecked. Out: a message for us with its text, files and what was
 * forwarded, or why it is ignored. Nothing here asks Slack.
 */
import type { MessageAttachment } from '../../../domain/message.ts'
import { asCommand, isAboutChannel } from './command-words.ts'
import { attachedText, ownText } from './content.ts'
import { filesOf } from './files.ts'
import { type Fields, fieldsOf, isId, isTimestamp, textIn } from './record.ts'
import { mentions, toPlainText, withoutLeadingMention } from './text.ts'

/** Our identity on Slack. */
export type SlackSelf = {
  readonly teamId: string
  /** Our workspace's organisation, if any: user IDs are unique within it. */
  readonly enterpriseId: string | undefined
  readonly userId: string
  readonly botId: string | undefined
  readonly name: string
  /** The workspace's address, ending in a slash. */
  readonly url: string | undefined
}

/** A message for us. Whether its author is allowed is decided elsewhere. */
export type SlackMessage = {
  /** The message itself, not the event that announced it: a message found while catching up is the same one. */
  readonly deliveryId: string
  readonly channel: string
  /** The message's own; equal to `threadTs` if it starts the thread. */
  readonly ts: string
  readonly threadTs: string
  readonly user: string
  /** The author's workspace, if it isn't ours. */
  readonly foreignTeam: string | undefined
  readonly text: string
  readonly attachments: readonly MessageAttachment[]
  /** Files whose content belongs to the text. */
  readonly snippets: readonly MessageAttachment[]
  /** Others' words that came with it, such as a forwarded message. */
  readonly forwarded: string | undefined
}

export type Parsed = { readonly message: SlackMessage } | { readonly ignored: string }

/**
 * Parses an Events API delivery into a message for us, or the reason why it is ignored. Accepts a mention anywhere and
 * any direct message; only as first written; never from a bot, least of all ourselves.
 */
export const parseEvent = (body: unknown, self: SlackSelf): Parsed => {
  const envelope = fieldsOf(body)
  const event = fieldsOf(envelope['event'])
  const { type, channel } = event
  if (envelope['type'] !== 'event_callback' || (type !== 'app_mention' && type !== 'message')) {
    return { ignored: 'not a message' }
  }
  if (!isId(channel)) return { ignored: 'incomplete' }
  // An edit that adds a mention arrives as a mention with `edited`.
  if (event['edited'] !== undefined) return { ignored: 'edited' }
  // A direct message arrives as `message` too, and would count twice; in a channel only mentions are for us.
  if (isDirect(channel) !== (type === 'message')) return { ignored: 'not addressed to us' }
  return parseMessage(channel, event, self)
}

/**
 * The same for a message from a channel's history. How it was first written isn't known there, so an edited one counts
 * as it is now.
 */
export const parseMessage = (channel: string, message: Fields, self: SlackSelf): Parsed => {
  const { ts, user } = message
  if (!isTimestamp(ts)) return { ignored: 'incomplete' }
  if (!messageSubtypes.includes(message['subtype']) || message['hidden'] === true) {
    return { ignored: 'edited, deleted or a service message' }
  }
  // Slack says null for "not a bot" in old events.
  if ((message['bot_id'] ?? undefined) !== undefined || message['bot_profile'] !== undefined) {
    return { ignored: 'written by a bot' }
  }
  if (!isId(user)) return { ignored: 'without an author' }
  if (user === self.userId) return { ignored: 'our own message' }
  const written = textIn(message['text']) || ownText(message)
  if (!isDirect(channel) && !mentions(written, self.userId)) {
    return { ignored: 'not mentioned, or only in code or in a quote' }
  }
  const names = new Map([[self.userId, self.name]])
  const text = asCommand(toPlainText(withoutLeadingMention(written, self.userId), names).trim())
  const { attachments, snippets } = filesOf(message)
  const forwarded = toPlainText(attachedText(message), names).trim()
  if (text === '' && forwarded === '' && attachments.length + snippets.length === 0) return { ignored: 'without text' }
  return {
    message: {
      deliveryId: `${channel}:${ts}`,
      channel,
      ts,
      threadTs: isTimestamp(message['thread_ts']) ? message['thread_ts'] : ts,
      user,
      foreignTeam: foreignTeamOf(
        [message['user_team'], message['source_team'], message['team']].find((team) => isId(team)),
        self,
      ),
      text,
      attachments,
      snippets,
      forwarded: forwarded === '' ? undefined : forwarded,
    },
  }
}

export const isDirect = (channel: string): boolean => channel.startsWith('D')

/** Where somebody wrote. */
export type Written = Pick<SlackMessage, 'channel' | 'ts' | 'threadTs' | 'text'>

/**
 * `C0123:1712345678.000100`: the thread, named by its first message. But a repository is chosen for the channel itself,
 * and every thread started in it from then on inherits it.
 */
export const conversationIdOf = ({ channel, ts, threadTs, text }: Written): string =>
  ts === threadTs && isAboutChannel(text) ? channel : `${channel}:${threadTs}`

/** Without a thread: the channel itself. */
export const threadOf = (conversationId: string): ChatAddress | undefined => {
  const [, channel, threadTs] = /^([A-Z0-9]{2,30})(?::(\d{1,12}\.\d{1,9}))?$/.exec(conversationId) ?? []
  return channel === undefined ? undefined : { channel, threadTs }
}

export type ChatAddress = { readonly channel: string; readonly threadTs: string | undefined }

/** A file with text, or a reply also shown in the channel, counts as a message. */
const messageSubtypes: readonly unknown[] = [undefined, 'file_share', 'thread_broadcast']

/**
 * A user ID is unique only within its workspace, and a shared channel has users from several. `user_team` is the
 * author's own; the others say the same for older messages.
 */
export const foreignTeamOf = (team: unknown, { teamId, enterpriseId }: SlackSelf): string | undefined =>
  !isId(team) || team === teamId || team === enterpriseId ? undefined : team

/** Users of other workspaces are listed as `T0123/U0456`: a bare user ID belongs to ours. */
export const authorOf = ({ user, foreignTeam }: Pick<SlackMessage, 'user' | 'foreignTeam'>): string =>
  foreignTeam === undefined ? user : `${foreignTeam}/${user}`

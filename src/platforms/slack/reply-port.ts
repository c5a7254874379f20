import type { Mark, ReplyPort } from '../replies/port.ts'
import { mayHaveSucceeded, type SlackClient, toDeliveryError } from './client.ts'
import { type ChatAddress, threadOf } from './parse.ts'
import { toMrkdwn } from './render.ts'
import { readThread } from './thread.ts'

/**
 * Slack displays 4,000 characters well and refuses an edit of more than 4,000 bytes (`msg_too_long`), counted with `&`,
 * `<` and `>` escaped; umlauts and code need the rest.
 */
export const LIMIT = 3_000
const EDIT_BYTES = 4_000

const FIRST_MS = 1_000
/** chat.update may be called 50 times a minute, by all conversations in the workspace together. */
const BETWEEN_MS = 1_500

/** Replies are messages in threads, recognised by their metadata. */
export const slackReplies = (client: SlackClient): ReplyPort<ChatAddress, string> => ({
  placeOf: threadOf,
  // Posting is limited per channel, every other method per workspace, and a token is for one workspace.
  rateLimitOf: ({ channel }, call) => ({
    name: call === 'post' ? `post ${channel}` : call,
    everyMs: BETWEEN_MS,
    within: { name: 'workspace', everyMs: BETWEEN_MS },
  }),
  render: toMrkdwn,
  post: async ({ channel, threadTs }, text, mark) => {
    const message = {
      channel,
      ...(threadTs !== undefined && { thread_ts: threadTs }),
      text,
      unfurl_links: false,
      unfurl_media: false,
      metadata: metadataOf(mark),
    }
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- Slack's method, not a window's
    const posted = await client.chat.postMessage(message)
    return posted.ts ?? ''
  },
  edit: async ({ channel }, ts, text, mark) => {
    const metadata = metadataOf(mark)
    // Unlike a new message, an edit is parsed as if a person had typed it, unless that is turned off.
    await client.chat.update({ channel, ts, text, metadata, parse: 'none', link_names: false })
  },
  delete: async ({ channel }, ts) => {
    await client.chat.delete({ channel, ts })
  },
  find: async ({ channel, threadTs }) => {
    // After a restart it's unknown in which thread a channel's message was answered.
    const messages = threadTs === undefined ? [] : await readThread(client, { channel, threadTs })
    const replies = new Set(messages.flatMap(({ mark }) => (mark?.type === types.reply ? [mark.id] : [])))
    return {
      has: (id) => replies.has(id),
      stale: messages.filter(({ mark }) => mark?.type === types.preview).map(({ ts }) => ts),
    }
  },
  failureOf: (error) => ({ error: toDeliveryError(error), mayHaveSucceeded: mayHaveSucceeded(error) }),
  previews: {
    limit: LIMIT,
    render: (markdown) => {
      const shown = `${toMrkdwn(markdown)} …`
      return canEdit(shown) ? shown : undefined
    },
    fits: (body) => canEdit(body),
    firstMs: FIRST_MS,
    whenOvertaken: 'stay',
  },
})

/** Metadata types that identify our messages. */
const types = { reply: 'coppice_reply', preview: 'coppice_preview' } as const

const metadataOf = ({ kind, id }: Mark) => ({ event_type: types[kind], event_payload: { id } })

const canEdit = (text: string): boolean => Buffer.byteLength(text) <= EDIT_BYTES

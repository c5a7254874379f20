import { DeliveryError } from '../../conversations/outbox/delivery.ts'
import type { Mark, ReplyPort } from '../replies/port.ts'
import { buttonsOf, type SlackAttachments } from './buttons.ts'
import { credentialProblemOf, mayHaveSucceeded, type SlackClient, toDeliveryError } from './client.ts'
import { type ChatAddress, threadOf } from './message/parse.ts'
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
export const slackReplies = (
  client: SlackClient,
  onCredentialProblem: (problem: string) => void = () => undefined,
): ReplyPort<ChatAddress, string> => ({
  placeOf: threadOf,
  // Posting is limited per channel, every other method per workspace, and a token is for one workspace.
  rateLimitOf: ({ channel }, call) => ({
    name: call === 'post' ? `post ${channel}` : call,
    everyMs: BETWEEN_MS,
    within: { name: 'workspace', everyMs: BETWEEN_MS },
  }),
  render: toMrkdwn,
  post: async ({ channel, threadTs }, text, mark, actions) => {
    const message = {
      channel,
      ...(threadTs !== undefined && { thread_ts: threadTs }),
      text,
      unfurl_links: false,
      unfurl_media: false,
      metadata: metadataOf(mark),
      ...(actions.length > 0 && { attachments: buttonsOf(mark, actions) }),
    }
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- Slack's method, not a window's
    const posted = await client.chat.postMessage(message)
    return posted.ts ?? ''
  },
  edit: async ({ channel }, ts, text, mark, actions) => {
    await client.chat.update(editOf({ channel, ts, text, mark, attachments: buttonsOf(mark, actions) }))
  },
  delete: async ({ channel }, ts) => {
    await client.chat.delete({ channel, ts })
  },
  find: async ({ channel, threadTs }) => {
    // After a restart it's unknown in which thread a channel's message was answered.
    const messages = threadTs === undefined ? [] : await readThread(client, { channel, threadTs }).catch(notAllowed)
    const replies = new Set(messages.flatMap(({ mark }) => (mark?.type === types.reply ? [mark.id] : [])))
    return {
      has: (id) => replies.has(id),
      stale: messages.filter(({ mark }) => mark?.type === types.preview).map(({ ts }) => ts),
    }
  },
  failureOf: (error) => {
    const problem = credentialProblemOf(error)
    if (problem !== undefined) onCredentialProblem(problem)
    return { error: toDeliveryError(error), mayHaveSucceeded: mayHaveSucceeded(error) }
  },
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

/** Without a history scope there is nothing to look up, and the reply must not wait for that. */
const notAllowed = (error: unknown): never => {
  const problem = credentialProblemOf(error)
  throw problem === undefined ? error : new DeliveryError('refused', problem, { cause: error })
}

/** Unlike a new message, an edit is parsed as if a person had typed it, unless that is turned off. */
export const editOf = ({
  mark,
  ...message
}: {
  readonly channel: string
  readonly ts: string
  readonly text: string
  readonly mark: Mark
  readonly attachments: SlackAttachments
}) => ({ ...message, metadata: metadataOf(mark), parse: 'none' as const, link_names: false })

/** Metadata types that identify our messages. */
const types = { reply: 'coppice_reply', preview: 'coppice_preview' } as const

const metadataOf = ({ kind, id }: Mark) => ({ event_type: types[kind], event_payload: { id } })

const canEdit = (text: string): boolean => Buffer.byteLength(text) <= EDIT_BYTES

import { webApi } from '@slack/bolt'
import { type SlackClient, toDeliveryError } from './client.ts'
import { type Fields, isId, listOf } from './message/record.ts'
import type { Thread } from './thread.ts'

/** Resolves after this time, or when the signal is aborted. */
export type Pause = (ms: number, signal: AbortSignal) => Promise<void>

export type HistoryParts = {
  readonly client: SlackClient
  readonly pause: Pause
  readonly signal: AbortSignal
  /** Something was left out. */
  readonly onCut: (what: string) => void
}

export type History = {
  /** Where the bot is a member, direct messages first: their authors are waiting for it. */
  channels(): Promise<readonly string[]>
  /** Messages of a channel after this time, oldest first, without replies in threads. */
  messages(channel: string, oldest: string): Promise<readonly Fields[]>
  /** Without the message that the thread began with. */
  replies(thread: Thread, oldest: string): Promise<readonly Fields[]>
}

/** These methods take about 50 calls a minute; live messages need some of them. */
const EVERY_MS = 1_500
const MAX_WAITS = 5
const PAGE = 200
const MAX_PAGES = 5

/** Reads slowly, to leave the rate limit to live messages. */
export const createHistory = ({ client, pause, signal, onCut }: HistoryParts): History => {
  const call = async <T>(work: () => Promise<T>): Promise<T> => {
    for (let waits = 0; ; waits++) {
      await pause(EVERY_MS, signal)
      signal.throwIfAborted()
      try {
        return await work()
      } catch (error) {
        if (!(error instanceof webApi.WebAPIRateLimitedError) || waits === MAX_WAITS) throw error
        await pause(toDeliveryError(error).retryAfterMs ?? 0, signal)
      }
    }
  }

  const pages = async (read: (cursor: string | undefined) => Promise<Page>, what: string): Promise<Fields[]> => {
    const found: Fields[] = []
    let cursor: string | undefined
    for (let page = 0; page < MAX_PAGES; page++) {
      const { items, next } = await call(() => read(cursor))
      found.push(...items)
      cursor = next
      if (cursor === undefined || cursor === '') return found
    }
    onCut(what)
    return found
  }

  return {
    channels: async () => {
      const found = await pages(async (cursor) => {
        const answer = await client.users.conversations({
          types: 'public_channel,private_channel,mpim,im',
          exclude_archived: true,
          limit: PAGE,
          ...(cursor !== undefined && { cursor }),
        })
        return pageOf(answer, answer.channels)
      }, 'too many channels')
      const ids = found.flatMap(({ id }) => (isId(id) ? [id] : []))
      return [...ids.filter((id) => id.startsWith('D')), ...ids.filter((id) => !id.startsWith('D'))]
    },
    messages: async (channel, oldest) => {
      const found = await pages(async (cursor) => {
        const answer = await client.conversations.history({
          channel,
          oldest,
          limit: PAGE,
          ...(cursor !== undefined && { cursor }),
        })
        return pageOf(answer, answer.messages)
      }, 'too many messages in a channel')
      return oldestFirst(found)
    },
    replies: async ({ channel, threadTs }, oldest) => {
      const found = await pages(async (cursor) => {
        const answer = await client.conversations.replies({
          channel,
          ts: threadTs,
          oldest,
          limit: PAGE,
          ...(cursor !== undefined && { cursor }),
        })
        return pageOf(answer, answer.messages)
      }, 'too many messages in a thread')
      // Slack adds the thread's first message, however old it is.
      return oldestFirst(found.filter(({ ts }) => ts !== threadTs && Number(ts) > Number(oldest)))
    },
  }
}

/** Which messages the first page has depends on the method and on what it is asked. */
const oldestFirst = (messages: readonly Fields[]): Fields[] =>
  messages.toSorted((one, other) => Number(one['ts']) - Number(other['ts']))

type Page = { readonly items: readonly Fields[]; readonly next: string | undefined }

const pageOf = (answer: { readonly response_metadata?: { next_cursor?: string } }, items: unknown): Page => ({
  items: listOf(items, PAGE * 5),
  next: answer.response_metadata?.next_cursor,
})

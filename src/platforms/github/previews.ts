import type { Clock } from '../../domain/clock.ts'
import type { Logger } from '../../process/log.ts'
import type { GithubClient } from './client.ts'
import { threadOf } from './conversation-id.ts'
import { failureOf } from './failure.ts'
import { asPreview } from './marker.ts'

/** The comment in which an agent's words are shown while it still speaks. */
export type Previews = {
  readonly show: (conversationId: string, text: string) => void
  /** Waits for what is under way and answers which comment is to become the reply. */
  readonly settle: (conversationId: string) => Promise<Settled | undefined>
  /** The reply is there: what is shown next is another one's. */
  readonly done: (conversationId: string) => void
  readonly stop: () => void
}

export type Settled = {
  readonly commentId: number | undefined
  /** One was asked for, and GitHub did not say whether it made it. */
  readonly unsure: boolean
}

type Shown = {
  text: string
  commentId: number | undefined
  unsure: boolean
  timer: NodeJS.Timeout | undefined
  busy: Promise<void> | undefined
  /** The reply itself is on its way: nothing is to be shown over it. */
  settled: boolean
}

export const createPreviews = ({
  client,
  clock,
  log,
  previewEveryMs,
}: {
  readonly client: Pick<GithubClient, 'createComment' | 'updateComment'>
  readonly clock: Clock
  readonly log: Logger
  /** The first words wait as well: a quick answer needs no preview. */
  readonly previewEveryMs: number
}): Previews => {
  const shown = new Map<string, Shown>()

  const write = async (conversationId: string, one: Shown): Promise<void> => {
    const thread = threadOf(conversationId)
    if (thread === undefined || one.settled) return
    const text = one.text
    try {
      if (one.commentId === undefined) one.commentId = await client.createComment(thread, asPreview(text))
      else await client.updateComment(thread, one.commentId, asPreview(text))
    } catch (error) {
      // Nothing depends on it arriving. Shown no more, though: a second try could make a second comment.
      const { kind, message } = failureOf(error, clock)
      one.unsure ||= one.commentId === undefined && kind === 'away'
      if (one.commentId === undefined) one.settled = true
      log.warn('what is being said could not be shown', { conversationId, error: message })
    }
    if (one.text !== text) later(conversationId, one)
  }
  const later = (conversationId: string, one: Shown): void => {
    if (one.timer !== undefined || one.settled) return
    one.timer = setTimeout(() => {
      one.timer = undefined
      one.busy = write(conversationId, one).finally(() => {
        one.busy = undefined
      })
    }, previewEveryMs).unref()
  }
  const forget = (conversationId: string): void => {
    const one = shown.get(conversationId)
    if (one === undefined) return
    clearTimeout(one.timer)
    one.settled = true
    shown.delete(conversationId)
  }

  return {
    show: (conversationId, text) => {
      const before = shown.get(conversationId)
      // The words of one run only grow; others are another run's, and the former one's stay as they are.
      if (before !== undefined && !text.startsWith(before.text)) forget(conversationId)
      const one = shown.get(conversationId) ?? {
        text,
        commentId: undefined,
        unsure: false,
        timer: undefined,
        busy: undefined,
        settled: false,
      }
      one.text = text
      shown.set(conversationId, one)
      if (one.busy === undefined) later(conversationId, one)
    },
    settle: async (conversationId) => {
      const one = shown.get(conversationId)
      if (one === undefined) return undefined
      one.settled = true
      clearTimeout(one.timer)
      await one.busy
      return { commentId: one.commentId, unsure: one.unsure }
    },
    done: forget,
    stop: () => {
      for (const one of shown.values()) clearTimeout(one.timer)
    },
  }
}

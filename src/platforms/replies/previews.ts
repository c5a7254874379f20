import { DeliveryError, type Progress } from '../../conversations/outbox/delivery.ts'
import type { ReplyAction } from '../../domain/message.ts'
import { type Attempt, type Conversation, type EngineParts, runInTurn, type ShownPreview } from './conversation.ts'
import type { Mark, ReplyPort } from './port.ts'
import { previewActions, progressMarkdown, unfinishedMarkdown } from './progress.ts'
import type { RateLimits } from './rate-limits.ts'

/** One message per conversation that shows how far the agent is, then becomes the reply. Best effort. */
export type Previews<Place, Id> = {
  update(conversation: Conversation<Place, Id>, progress: Progress): void
  /** Show no more previews: the reply is ready, or there will be none. */
  stop(conversation: Conversation<Place, Id>): void
  /** Edits the preview into the reply; false: there is no preview, or it can't be used. */
  turnIntoReply(
    conversation: Conversation<Place, Id>,
    body: string,
    mark: Mark,
    actions: readonly ReplyAction[],
  ): Promise<boolean>
  /** The run ended without an answer: keeps what it wrote. False: it wrote nothing, and another reply may use it. */
  keepUnfinished(conversation: Conversation<Place, Id>): Promise<boolean>
  /** Something of ours was posted below the preview. */
  onOvertaken(conversation: Conversation<Place, Id>, how: 'stay' | 'repost' | 'remove'): Promise<void>
}

export type PreviewParts<Place, Id> = EngineParts & {
  readonly rateLimits: Pick<RateLimits, 'whenFree'>
  readonly attempt: Attempt<Place, Id>
  readonly remove: (conversation: Conversation<Place, Id>, id: Id) => Promise<void>
  readonly findEarlier: (conversation: Conversation<Place, Id>) => Promise<unknown>
}

/** How often the time is updated while an agent is silent, and the pause after a failure. */
const TICK_MS = 15_000

export const createPreviews = <Place, Id>(
  port: ReplyPort<Place, Id>,
  { clock, log, rateLimits, attempt, remove, findEarlier }: PreviewParts<Place, Id>,
): Previews<Place, Id> => {
  const { previews } = port
  let count = 0

  const show = async (conversation: Conversation<Place, Id>, progress: Progress, isNews: boolean): Promise<void> => {
    const body = previews.render(progressMarkdown(progress, { limit: previews.limit, now: clock() }))
    if (body === undefined || body === conversation.shown?.body) return
    await findEarlier(conversation)
    const { shown } = conversation
    const mayGrow = shown?.overtaken !== true || previews.whenOvertaken === 'stay'
    if (shown !== undefined && mayGrow && isOfRun(shown.progress, progress)) {
      const mark = { kind: 'preview', id: 'preview' } as const
      await attempt(conversation, 'edit', () => port.edit(conversation.place, shown.id, body, mark, previewActions))
      conversation.shown = { ...shown, ...(conversation.shown ?? shown), progress, body }
      return
    }
    // Don't post below newer messages only to update the time.
    if (!isNews) return
    conversation.shown = undefined
    if (shown !== undefined) await discard(conversation, shown)
    const mark = { kind: 'preview', id: `preview-${clock()}-${(count += 1)}` } as const
    const id = await attempt(conversation, 'post', () => port.post(conversation.place, body, mark, previewActions))
    conversation.shown = { id, progress, body, overtaken: false }
  }

  /** Keeps only the text: the clock and the Stop button of an ended run would mislead. */
  const finish = async (conversation: Conversation<Place, Id>, id: Id, progress: Progress): Promise<void> => {
    const body = port.render(unfinishedMarkdown(progress, previews.limit))
    const mark = { kind: 'reply', id: `unfinished-${progress.startedAt}` } as const
    await attempt(conversation, 'edit', () => port.edit(conversation.place, id, body, mark, []))
  }

  const discard = async (
    conversation: Conversation<Place, Id>,
    { id, progress }: Pick<ShownPreview<Id>, 'id' | 'progress'>,
  ): Promise<void> => {
    if (port.delete !== undefined || progress === undefined) return remove(conversation, id)
    await finish(conversation, id, progress).catch((error: unknown) =>
      log.debug('a preview could not be finished', { error }),
    )
  }

  const showInTurn = async (conversation: Conversation<Place, Id>, isNews: boolean): Promise<void> => {
    // Read when it is our turn: the reply may have been sent by then.
    let shown: Progress | undefined
    let failed = false
    try {
      await runInTurn(conversation, async () => {
        shown = conversation.progress
        if (shown !== undefined && !conversation.muted) await show(conversation, shown, isNews)
      })
    } catch (error) {
      failed = true
      if (error instanceof DeliveryError && error.kind === 'refused') conversation.muted = true
      log.debug('a preview could not be shown', { error })
    }
    if (conversation.progress === undefined || conversation.muted || conversation.waiting !== undefined) return
    const hasNews = failed ? isNews : conversation.progress !== shown
    wait(conversation, clock() + (hasNews && !failed ? 0 : TICK_MS), hasNews)
  }

  const wait = (conversation: Conversation<Place, Id>, from: number, hasNews: boolean): void => {
    conversation.waiting?.cancel()
    const limitOf = () => port.rateLimitOf(conversation.place, conversation.shown === undefined ? 'post' : 'edit')
    const cancel = rateLimits.whenFree(from, limitOf, () => {
      conversation.waiting = undefined
      void showInTurn(conversation, hasNews)
    })
    conversation.waiting = { hasNews, cancel }
  }

  return {
    update: (conversation, progress) => {
      const isFirst = !isOfRun(conversation.progress, progress) || conversation.progress === undefined
      if (isFirst) conversation.muted = false
      conversation.progress = progress
      conversation.ended = undefined
      if (conversation.muted || conversation.waiting?.hasNews === true) return
      wait(conversation, clock() + (isFirst ? previews.firstMs : 0), true)
    },
    stop: (conversation) => {
      conversation.waiting?.cancel()
      conversation.waiting = undefined
      conversation.progress = undefined
      conversation.muted = false
    },
    turnIntoReply: async (conversation, body, mark, actions) => {
      const { shown } = conversation
      if (shown === undefined || shown.overtaken || previews.fits?.(body) === false) return false
      try {
        await attempt(conversation, 'edit', () => port.edit(conversation.place, shown.id, body, mark, actions))
        conversation.shown = undefined
        return true
      } catch (error) {
        if (error instanceof DeliveryError && error.kind === 'refused') return false
        throw error
      }
    },
    keepUnfinished: async (conversation) => {
      const { shown, ended } = conversation
      const isEmpty = shown !== undefined && ended?.text.trim() === ''
      if (isEmpty) return false
      if (shown !== undefined && ended !== undefined) {
        await finish(conversation, shown.id, ended).catch((error: unknown) => {
          // Tried again with the reply, or it would look as if the run went on.
          if (isUnreachable(error)) throw error
          log.debug('a preview could not be finished', { error })
        })
        conversation.shown = undefined
      }
      conversation.ended = undefined
      return true
    },
    onOvertaken: async (conversation, how) => {
      const { shown } = conversation
      if (shown === undefined || how === 'stay') return
      conversation.shown = how === 'remove' ? undefined : { ...shown, overtaken: true }
      if (how === 'remove') await discard(conversation, shown)
    },
  }
}

const isUnreachable = (error: unknown): boolean => error instanceof DeliveryError && error.kind === 'unreachable'

/** An earlier process's preview may belong to this run, which was restarted. */
const isOfRun = (one: Progress | undefined, other: Progress): boolean =>
  one === undefined || one.startedAt === other.startedAt

import { DeliveryError } from '../../conversations/outbox/delivery.ts'
import type { ReplyAction } from '../../domain/message.ts'
import { type Attempt, type Conversation, type EngineParts, runInTurn } from './conversation.ts'
import type { Mark, ReplyPort } from './port.ts'

/** One message per conversation that grows while the agent works, then becomes the reply. Best effort. */
export type Previews<Place, Id> = {
  update(conversation: Conversation<Place, Id>, text: string): void
  /** The reply is ready: show no more previews. */
  stop(conversation: Conversation<Place, Id>): void
  /** Edits the preview into the reply; false: there is no preview, or it can't be used. */
  turnIntoReply(
    conversation: Conversation<Place, Id>,
    body: string,
    mark: Mark,
    actions: readonly ReplyAction[],
  ): Promise<boolean>
  /** Something of ours was posted below the preview. */
  onOvertaken(conversation: Conversation<Place, Id>, how: 'stay' | 'repost' | 'remove'): Promise<void>
}

export type PreviewParts<Place, Id> = EngineParts & {
  readonly attempt: Attempt<Place, Id>
  readonly remove: (conversation: Conversation<Place, Id>, id: Id) => Promise<void>
  readonly findEarlier: (conversation: Conversation<Place, Id>) => Promise<unknown>
}

/** An agent silent for this long doesn't count towards its rate limit. */
const INACTIVE_MS = 60_000

export const createPreviews = <Place, Id>(
  port: ReplyPort<Place, Id>,
  { clock, log, attempt, remove, findEarlier }: PreviewParts<Place, Id>,
): Previews<Place, Id> => {
  const { previews } = port
  const growing = new Set<Conversation<Place, Id>>()
  let count = 0

  const show = async (conversation: Conversation<Place, Id>): Promise<void> => {
    const { previewText } = conversation
    if (previewText === undefined || conversation.muted) return
    const body = previews.render(previewText)
    if (body === undefined || body === conversation.shown?.body) return
    await findEarlier(conversation)
    const { shown } = conversation
    const mayGrow = shown?.overtaken !== true || previews.whenOvertaken === 'stay'
    // A run's previews each extend the one before; otherwise it's another run's.
    if (shown !== undefined && mayGrow && previewText.startsWith(shown.source)) {
      const mark = { kind: 'preview', id: 'preview' } as const
      await attempt(conversation, 'edit', () => port.edit(conversation.place, shown.id, body, mark, []))
      conversation.shown = { ...shown, ...(conversation.shown ?? shown), source: previewText, body }
      return
    }
    conversation.shown = undefined
    if (shown !== undefined) await remove(conversation, shown.id)
    const mark = { kind: 'preview', id: `preview-${clock()}-${(count += 1)}` } as const
    const id = await attempt(conversation, 'post', () => port.post(conversation.place, body, mark, []))
    conversation.shown = { id, source: previewText, body, overtaken: false }
  }

  const pauseOf = (conversation: Conversation<Place, Id>): number => {
    if (conversation.shown === undefined) return previews.firstMs
    const { name, everyMs } = port.rateLimitOf(conversation.place, 'edit')
    let sharing = 0
    for (const other of growing) {
      if (clock() - other.previewTextAt > INACTIVE_MS) growing.delete(other)
      else if (port.rateLimitOf(other.place, 'edit').name === name) sharing += 1
    }
    return everyMs * Math.max(1, sharing)
  }

  const scheduleShow = (conversation: Conversation<Place, Id>): void => {
    let asked: string | undefined
    const timer = setTimeout(() => {
      asked = conversation.previewText
      void runInTurn(conversation, () => show(conversation))
        .catch((error: unknown) => {
          if (error instanceof DeliveryError && error.kind === 'refused') conversation.muted = true
          log.debug('a preview could not be shown', { error })
        })
        .finally(() => {
          if (conversation.timer !== timer) return
          conversation.timer = undefined
          // More text arrived meanwhile. A failed preview isn't retried: the next text includes it.
          if (conversation.previewText !== undefined && conversation.previewText !== asked) scheduleShow(conversation)
        })
    }, pauseOf(conversation)).unref()
    conversation.timer = timer
  }

  return {
    update: (conversation, text) => {
      conversation.previewText = text
      conversation.previewTextAt = clock()
      growing.add(conversation)
      if (conversation.timer === undefined) scheduleShow(conversation)
    },
    stop: (conversation) => {
      clearTimeout(conversation.timer)
      conversation.timer = undefined
      conversation.previewText = undefined
      conversation.muted = false
      growing.delete(conversation)
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
    onOvertaken: async (conversation, how) => {
      const { shown } = conversation
      if (shown === undefined || how === 'stay') return
      conversation.shown = how === 'remove' ? undefined : { ...shown, overtaken: true }
      if (how === 'remove') await remove(conversation, shown.id)
    },
  }
}

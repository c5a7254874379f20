import { DeliveryError } from '../../conversations/outbox/delivery.ts'
import { type Attempt, type Conversation, type EngineParts, inTurn } from './conversation.ts'
import type { Mark, ReplyPort } from './port.ts'

/** One message per conversation that grows while the agent speaks, and becomes its answer. Nothing depends on it. */
export type Previews<Place, Id> = {
  want(conversation: Conversation<Place, Id>, text: string): void
  /** The answer comes: nothing more is shown. */
  stop(conversation: Conversation<Place, Id>): void
  /** Turns the preview into the answer; false: there is none, or it cannot be that one. */
  become(conversation: Conversation<Place, Id>, body: string, mark: Mark): Promise<boolean>
  /** Something of ours was posted below it. */
  overtaken(conversation: Conversation<Place, Id>, how: 'stay' | 'repost' | 'remove'): Promise<void>
}

export type PreviewParts<Place, Id> = EngineParts & {
  readonly attempt: Attempt<Place, Id>
  readonly remove: (conversation: Conversation<Place, Id>, id: Id) => Promise<void>
  readonly look: (conversation: Conversation<Place, Id>) => Promise<unknown>
}

/** An agent that has said nothing for so long shares its unit with nobody. */
const QUIET_MS = 60_000

export const createPreviews = <Place, Id>(
  port: ReplyPort<Place, Id>,
  { clock, log, attempt, remove, look }: PreviewParts<Place, Id>,
): Previews<Place, Id> => {
  const { previews } = port
  const growing = new Set<Conversation<Place, Id>>()
  let count = 0

  const show = async (conversation: Conversation<Place, Id>): Promise<void> => {
    const { wanted } = conversation
    if (wanted === undefined || conversation.muted) return
    const body = previews.render(wanted)
    if (body === undefined || body === conversation.shown?.body) return
    await look(conversation)
    const { shown } = conversation
    const mayGrow = shown?.overtaken !== true || previews.whenOvertaken === 'stay'
    // Each preview of one run goes on from the one before: another is another run's.
    if (shown !== undefined && mayGrow && wanted.startsWith(shown.source)) {
      const mark = { kind: 'preview', id: 'preview' } as const
      await attempt(conversation, 'edit', () => port.edit(conversation.place, shown.id, body, mark))
      conversation.shown = { ...shown, ...(conversation.shown ?? shown), source: wanted, body }
      return
    }
    conversation.shown = undefined
    if (shown !== undefined) await remove(conversation, shown.id)
    const mark = { kind: 'preview', id: `preview-${clock()}-${(count += 1)}` } as const
    const id = await attempt(conversation, 'post', () => port.post(conversation.place, body, mark))
    conversation.shown = { id, source: wanted, body, overtaken: false }
  }

  const pauseOf = (conversation: Conversation<Place, Id>): number => {
    if (conversation.shown === undefined) return previews.firstMs
    const { name, everyMs } = port.unitOf(conversation.place, 'edit')
    let sharing = 0
    for (const other of growing) {
      if (clock() - other.wantedAt > QUIET_MS) growing.delete(other)
      else if (port.unitOf(other.place, 'edit').name === name) sharing += 1
    }
    return everyMs * Math.max(1, sharing)
  }

  const showSoon = (conversation: Conversation<Place, Id>): void => {
    let asked: string | undefined
    const timer = setTimeout(() => {
      asked = conversation.wanted
      void inTurn(conversation, () => show(conversation))
        .catch((error: unknown) => {
          if (error instanceof DeliveryError && error.kind === 'refused') conversation.muted = true
          log.debug('a preview could not be shown', { error })
        })
        .finally(() => {
          if (conversation.timer !== timer) return
          conversation.timer = undefined
          // More was said meanwhile. What failed is not tried again by itself: the next words bring it along.
          if (conversation.wanted !== undefined && conversation.wanted !== asked) showSoon(conversation)
        })
    }, pauseOf(conversation)).unref()
    conversation.timer = timer
  }

  return {
    want: (conversation, text) => {
      conversation.wanted = text
      conversation.wantedAt = clock()
      growing.add(conversation)
      if (conversation.timer === undefined) showSoon(conversation)
    },
    stop: (conversation) => {
      clearTimeout(conversation.timer)
      conversation.timer = undefined
      conversation.wanted = undefined
      conversation.muted = false
      growing.delete(conversation)
    },
    become: async (conversation, body, mark) => {
      const { shown } = conversation
      if (shown === undefined || shown.overtaken || previews.fits?.(body) === false) return false
      try {
        await attempt(conversation, 'edit', () => port.edit(conversation.place, shown.id, body, mark))
        conversation.shown = undefined
        return true
      } catch (error) {
        if (error instanceof DeliveryError && error.kind === 'refused') return false
        throw error
      }
    },
    overtaken: async (conversation, how) => {
      const { shown } = conversation
      if (shown === undefined || how === 'stay') return
      conversation.shown = how === 'remove' ? undefined : { ...shown, overtaken: true }
      if (how === 'remove') await remove(conversation, shown.id)
    },
  }
}

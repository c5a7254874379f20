import type { Logger } from '../../process/log.ts'

/** One message per conversation that grows while the agent speaks. */
export type Previews = {
  update(conversationId: string, text: string): void
  /** A message that an earlier process left half written. */
  adopt(conversationId: string, messageId: string): void
  /** Ends it: answers the message that shows it, once nothing is being written to it any more. */
  take(conversationId: string): Promise<string | undefined>
  stop(): void
}

export type PreviewParts = {
  /** Writes it into that message, or into a new one; answers which. */
  readonly show: (conversationId: string, text: string, messageId: string | undefined, nonce: string) => Promise<string>
  readonly everyMs: number
  readonly ids: () => string
  readonly log: Logger
}

type Shown = {
  latest: string | undefined
  messageId: string | undefined
  readonly nonce: string
  timer: NodeJS.Timeout | undefined
  writing: Promise<void> | undefined
}

/** Nothing depends on a preview: what cannot be shown is left out, and the next one shows more. */
export const createPreviews = ({ show, everyMs, ids, log }: PreviewParts): Previews => {
  const all = new Map<string, Shown>()
  const fresh = (messageId?: string): Shown => ({
    latest: undefined,
    messageId,
    nonce: ids(),
    timer: undefined,
    writing: undefined,
  })
  const write = async (conversationId: string, shown: Shown): Promise<void> => {
    const text = shown.latest
    shown.latest = undefined
    if (text === undefined) return
    try {
      shown.messageId = await show(conversationId, text, shown.messageId, shown.nonce)
    } catch (error) {
      log.debug('a preview could not be shown', { conversationId, error })
    }
  }
  const later = (conversationId: string, shown: Shown): void => {
    shown.timer ??= setTimeout(() => {
      shown.writing = write(conversationId, shown).finally(() => {
        shown.writing = undefined
        shown.timer = undefined
        if (shown.latest !== undefined && all.get(conversationId) === shown) later(conversationId, shown)
      })
    }, everyMs).unref()
  }
  return {
    update: (conversationId, text) => {
      if (text.trim() === '') return
      const shown = all.get(conversationId) ?? fresh()
      all.set(conversationId, shown)
      shown.latest = text
      later(conversationId, shown)
    },
    adopt: (conversationId, messageId) => {
      if (!all.has(conversationId)) all.set(conversationId, fresh(messageId))
    },
    take: async (conversationId) => {
      const shown = all.get(conversationId)
      if (shown === undefined) return undefined
      all.delete(conversationId)
      clearTimeout(shown.timer)
      await shown.writing
      return shown.messageId
    },
    stop: () => {
      for (const { timer } of all.values()) clearTimeout(timer)
    },
  }
}

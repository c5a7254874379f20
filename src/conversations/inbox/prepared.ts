import type { InboxMessage } from '../../store/store.ts'
import type { ConversationsContext } from '../context.ts'

/** The message with data fetched from its platform. `/stop` and shutdown don't wait for that. */
export const prepared = async (
  { deliveries }: Pick<ConversationsContext, 'deliveries'>,
  message: InboxMessage,
  signal: AbortSignal,
): Promise<InboxMessage> => {
  // Before calling: nobody would handle its rejection, and that would end the process.
  signal.throwIfAborted()
  const asking = deliveries.get(message.platform)?.prepare?.(message)
  if (asking === undefined) return message
  const aborted = Promise.withResolvers<never>()
  const abort = (): void => aborted.reject(new Error('broken off', { cause: signal.reason }))
  signal.addEventListener('abort', abort, { once: true })
  try {
    return { ...message, details: await Promise.race([asking, aborted.promise]) }
  } finally {
    signal.removeEventListener('abort', abort)
    // Nobody awaits it now.
    asking.catch(() => undefined)
  }
}

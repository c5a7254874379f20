import type { InboxMessage } from '../../store/store.ts'
import type { ConversationsContext } from '../context.ts'

/** The message with what its platform has to be asked for. `/stop` and the end of the server do not wait for that. */
export const prepared = async (
  { deliveries }: Pick<ConversationsContext, 'deliveries'>,
  message: InboxMessage,
  signal: AbortSignal,
): Promise<InboxMessage> => {
  // Before anything is asked: nobody would be there to hear that it failed, and Node ends a process over that.
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
    // Nobody waits for it any more.
    asking.catch(() => undefined)
  }
}

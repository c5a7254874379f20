import type { Clock } from '../../domain/clock.ts'
import type { Logger } from '../../process/log.ts'
import { threadOf } from './conversation-id.ts'
import { failureOf } from './failure.ts'
import type { MessageClient } from './message-client.ts'
import { messageRefOf } from './message-id.ts'

/** Shows the author of an accepted message that it was seen: 👀. Best effort, in the background. */
export const createAcknowledge = ({
  client,
  clock,
  log,
}: {
  readonly client: Pick<MessageClient, 'react'>
  readonly clock: Clock
  readonly log: Logger
}): ((conversationId: string, messageId: string | undefined) => void) => {
  let quietUntil = 0
  return (conversationId, messageId) => {
    const thread = threadOf(conversationId)
    const message = messageRefOf(messageId)
    if (thread === undefined || message === undefined || clock() < quietUntil) return
    client.react(thread, message).catch((error: unknown) => {
      const failure = failureOf(error, clock)
      // A reaction isn't worth a request that GitHub asked us not to make.
      if (failure.retryAfterMs !== undefined) quietUntil = clock() + failure.retryAfterMs
      log.info('a message could not be acknowledged with a reaction', { conversationId, message: failure.message })
    })
  }
}

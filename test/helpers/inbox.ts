import type { IncomingMessage } from '../../src/domain/message.ts'
import type { Accepted, PlatformInbox, TooOld } from '../../src/platforms/platform.ts'

export type Received = Omit<IncomingMessage, 'platform'>

/** One function for all that a platform hands over: orders and closed threads. */
export const inboxOf = (accept: (message: Received) => Promise<Accepted | TooOld>): PlatformInbox => ({
  accept: (order) => accept(order),
  close: (thread) => accept({ ...thread, kind: 'closed', text: '' }),
})

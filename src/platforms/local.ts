import { AppError } from '../domain/errors.ts'
import type { PlatformCapabilities } from '../domain/platform-capabilities.ts'
import { type Author, authorise, type Authorised } from './authorisation.ts'
import type { Accepted, ThreadClosed, PlatformMessage, Platform, PlatformInbox, TooOld } from './platform.ts'

/** A platform whose users call this server directly: they post messages and read the replies from the store. */
export type LocalPlatform = Platform & {
  /** Resolves once the message is durable. Throws `busy` while the platform isn't accepting. */
  receive(order: PlatformMessage, authenticated: Authenticated): Promise<Accepted>
  /** Closes a conversation. */
  close(thread: ThreadClosed, authenticated: Authenticated): Promise<Accepted>
}

/** Anyone with the server's token may see everything. */
export const localCapabilities: PlatformCapabilities = { reach: 'server', persistent: false }

type Authenticated = Extract<Author, { kind: 'api-caller' }>['authenticated']

export const createLocalPlatform = (name: string): LocalPlatform => {
  let inbox: PlatformInbox | undefined
  const open = (): PlatformInbox => {
    if (inbox !== undefined) return inbox
    throw new AppError('busy', 'Coppice is not accepting messages right now', {
      remedy: 'the server is starting or stopping: try again in a few seconds',
    })
  }
  return {
    platform: name,
    limit: undefined,
    start: async (given) => {
      inbox = given
    },
    stop: async () => {
      inbox = undefined
    },
    receive: async (order, authenticated) => recent(await open().accept(order, proofFor(authenticated))),
    close: async (thread, authenticated) => {
      proofFor(authenticated)
      return recent(await open().close(thread))
    },
    // Nobody to notify: clients read the stored reply once its state is `sent`.
    send: async () => {},
  }
}

const proofFor = (authenticated: Authenticated): Authorised => {
  const proof = authorise({ kind: 'api-caller', authenticated })
  if (proof === undefined) throw new AppError('usage', "authentication with the server's token is required")
  return proof
}

const recent = (accepted: Accepted | TooOld): Accepted => {
  if (accepted.outcome === 'too-old') throw new AppError('usage', 'this message is too old')
  return accepted
}

/**
 * Scopes a caller's delivery ID to its conversation: two callers that both count from 1 must not lose each other's
 * messages. Neither part may contain a line break, so the combination is unambiguous.
 */
export const localDeliveryId = (conversationId: string, deliveryId: string): string =>
  `${conversationId}\n${deliveryId}`

import { AppError } from '../domain/errors.ts'
import type { PlatformCapabilities } from '../domain/platform-capabilities.ts'
import { type Author, authorise, type Authorised } from './authorisation.ts'
import type { Accepted, Closing, Order, Platform, PlatformInbox, TooOld } from './platform.ts'

/** A platform whose users call this very server: what they send is handed in, and replies are read from its records. */
export type LocalPlatform = Platform & {
  /** Durable when it answers. Throws `busy` while the platform does not accept. */
  receive(order: Order, authenticated: Authenticated): Promise<Accepted>
  /** Ends a conversation. */
  close(thread: Closing, authenticated: Authenticated): Promise<Accepted>
}

/** Whoever has the token of the server may see all of it. */
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
    // There is nobody to reach: the recorded reply, once it says `sent`, is what its readers read.
    send: async () => {},
  }
}

const proofFor = (authenticated: Authenticated): Authorised => {
  const proof = authorise({ kind: 'api-caller', authenticated })
  if (proof === undefined) throw new AppError('usage', 'this needs the token of the server')
  return proof
}

const recent = (accepted: Accepted | TooOld): Accepted => {
  if (accepted.outcome === 'too-old') throw new AppError('usage', 'this message is too old to be accepted')
  return accepted
}

/**
 * A delivery id chosen by a caller is one of its own conversation's: two callers that both count from 1 must not lose
 * each other's messages. Neither part may have a line break, so that no two pairs are written alike.
 */
export const localDeliveryId = (conversationId: string, deliveryId: string): string =>
  `${conversationId}\n${deliveryId}`

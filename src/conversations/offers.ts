import type { Notice } from '../domain/notice.ts'
import type { InboxMessage, Store } from '../store/store.ts'
import { lastOffer } from './last-offer.ts'
import { linkCommand, offerActions, offerNotice } from './notices.ts'
import type { NewReply } from './outbox/replies.ts'

export type Offer = Extract<Notice, { kind: 'related' }>

export const isOffer = (notice: Notice): notice is Offer => notice.kind === 'related'

/** The one word that accepts an offer. */
const ACCEPT = /^`?link`?$/i
const KEY = 'offer:'

/** Recorded as the last of a message's replies, since only what was said last can be accepted with a word. */
export const offerReply = (offer: Offer): NewReply => ({
  key: `${KEY}${offer.environmentId}`,
  role: 'system',
  text: offerNotice(offer),
  actions: offerActions(offer.environmentId),
})

/**
 * The command that a message stands for, if it is nothing but that word, and if the offer is the last thing that we said
 * here and was there when the message was written. Anything else is an ordinary message.
 */
export const acceptedOffer = async (
  store: Pick<Store, 'outbox'>,
  message: Pick<InboxMessage, 'id' | 'platform' | 'conversationId' | 'kind' | 'text' | 'acceptedAt'>,
): Promise<string | undefined> => {
  if (message.kind !== 'message' || !ACCEPT.test(message.text.trim())) return undefined
  const offer = await lastOffer(store, message, KEY)
  return offer && linkCommand(offer.value)
}

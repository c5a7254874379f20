import type { Insertable, Selectable } from 'kysely'
import type { IncomingMessage, Lane, MessageDetails, MessageState } from '../../domain/message.ts'
import type { ProcessIdentity } from '../../domain/process-identity.ts'
import { fromJson, orNull, toJson } from '../rows.ts'
import type { InboxMessage, InboxStore, MessageHolder } from '../store.ts'
import type { InboxRow } from '../tables.ts'

export type AcceptedMessage = Parameters<InboxStore['accept']>[0][number]

/** In the lane `turn`, the queue marks messages ready; others are ready at once. */
export const toRow = (message: AcceptedMessage): Insertable<InboxRow> => ({
  id: message.id,
  platform: message.platform,
  conversation_id: message.conversationId,
  delivery_id: message.deliveryId,
  kind: message.kind,
  text: message.text,
  details: toJson(message.details),
  lane: message.lane,
  state: 'waiting',
  ready: message.lane === 'turn' ? 0 : 1,
  accepted_at: message.acceptedAt,
  attempts: 0,
  put_backs: 0,
})

export const fromRow = (row: Selectable<InboxRow>): InboxMessage => ({
  id: row.id,
  platform: row.platform,
  conversationId: row.conversation_id,
  deliveryId: row.delivery_id,
  kind: row.kind as IncomingMessage['kind'],
  text: row.text,
  details: fromJson(row.details) as MessageDetails,
  lane: row.lane as Lane,
  state: row.state as MessageState,
  acceptedAt: row.accepted_at,
  attempts: row.attempts,
  putBacks: row.put_backs,
  holder: holderOf(row),
  child: identityOf(row.child_pid, row.child_start_time),
})

export const holderColumns = (holder: MessageHolder | undefined) => ({
  holder_host: orNull(holder?.host),
  holder_pid: orNull(holder?.process.pid),
  holder_start_time: orNull(holder?.process.startTime),
})

export const childColumns = (child: ProcessIdentity | undefined) => ({
  child_pid: orNull(child?.pid),
  child_start_time: orNull(child?.startTime),
})

const holderOf = (row: Selectable<InboxRow>): MessageHolder | undefined => {
  const process = identityOf(row.holder_pid, row.holder_start_time)
  return row.holder_host === null || process === undefined ? undefined : { host: row.holder_host, process }
}

const identityOf = (pid: number | null, startTime: string | null): ProcessIdentity | undefined =>
  pid === null || startTime === null ? undefined : { pid, startTime }

/*
 * The inbox. In: accepted messages, stored before the platform is told. Out: one message at a time per conversation,
 * until it is answered or has failed.
 */
import type { IncomingMessage, Lane } from '../../domain/message.ts'
import type { ProcessIdentity } from '../../domain/process-identity.ts'
import type { InboxMessage, Store } from '../../store/store.ts'

/**
 * Picks the next message. Backed by the database; could be a distributed queue. Guarantees: `accept` resolves once the
 * message is durable, one claim per message, and in the lane `turn` one running message per conversation, in order of
 * acceptance.
 */
export type MessageQueue = {
  /** Resolves once stored. `duplicate`: known delivery. */
  accept(message: IncomingMessage & { readonly lane: Lane }): Promise<{ outcome: 'accepted' | 'duplicate'; id: string }>
  /** Claims the lane's next message; undefined if none is available. */
  claim(lane: Lane): Promise<InboxMessage | undefined>
  /** Records the agent's process, so that a restart can end it before retrying the message. */
  began(message: InboxMessage, child: ProcessIdentity | undefined): Promise<void>
  /**
   * Marks it done, with all that `record` writes, in one transaction: a reply is recorded exactly if its message is
   * done. Returns false, writing nothing, if the message isn't ours now.
   */
  finish(message: InboxMessage, record: (store: Store) => Promise<void>): Promise<boolean>
  /** Requeues a claimed, unfinished message. */
  putBack(message: InboxMessage): Promise<void>
  /** Requeues messages of dead holders, after ending their agents' processes. */
  recover(): Promise<{ putBack: number; left: number }>
  /**
   * The same for messages of this process that nothing here works on: a claim whose answer was lost, an end that
   * couldn't be recorded. Don't call it during a claim.
   */
  recoverOwn(isWorkedOn: (id: string) => boolean): Promise<{ putBack: number; left: number }>
  /** A reply was recorded while its message is still running. */
  outboxChanged(): void
  /** Called when there may be something to claim or deliver. */
  onWake(listener: () => void): () => void
}

/*
 * The inbox. In: accepted messages, stored before the platform is told. Out: one message at a time per conversation,
 * until it is answered or has failed.
 */
import type { IncomingMessage, Lane } from '../../domain/message.ts'
import type { ProcessIdentity } from '../../domain/process-identity.ts'
import type { InboxMessage, Store } from '../../store/store.ts'

/**
 * What picks the next message. A seam: the database today, a distributed queue later. Whatever takes its place keeps
 * these promises: `accept` answers once the message is durable, one claim per message, one running message per
 * conversation in the lane `turn`, in the order of acceptance.
 */
export type MessageQueue = {
  /** Durable when it answers. `duplicate`: this delivery is known. */
  accept(message: IncomingMessage & { readonly lane: Lane }): Promise<{ outcome: 'accepted' | 'duplicate'; id: string }>
  /** The next one of the lane, now ours; undefined when there is none to be had. */
  claim(lane: Lane): Promise<InboxMessage | undefined>
  /** Names the agent's process, so that a restart can end it before it runs the message again. */
  began(message: InboxMessage, child: ProcessIdentity | undefined): Promise<void>
  /**
   * Done, with everything `record` writes, in one transaction: a reply is recorded exactly when its message is done.
   * False when the message is not ours any more; then nothing was written.
   */
  finish(message: InboxMessage, record: (store: Store) => Promise<void>): Promise<boolean>
  /** Puts back one that was claimed and not finished; it will be run again. */
  putBack(message: InboxMessage): Promise<void>
  /** Messages of holders that died are put back, their agents' processes ended first. Answers how many. */
  recover(): Promise<{ putBack: number; left: number }>
  /**
   * The same for messages of this very process that nobody in it works on: a claim whose answer was lost, an end that
   * could not be recorded. Not to be called while something is being claimed.
   */
  recoverOwn(isWorkedOn: (id: string) => boolean): Promise<{ putBack: number; left: number }>
  /** Something was recorded to be said while a message is still being worked on. */
  outboxChanged(): void
  /** Calls whenever there may be something to claim or to deliver. */
  onWake(listener: () => void): () => void
}

import { setImmediate } from 'node:timers/promises'
import type { Clock, Ids } from '../../domain/clock.ts'
import type { ProcessIdentity } from '../../domain/process-identity.ts'
import type { Logger } from '../../process/log.ts'
import { liveness } from '../../process/identity.ts'
import { isSame } from '../../process/tree.ts'
import type { ConversationKey, InboxMessage, MessageHolder, Store } from '../../store/store.ts'
import { withStoreRetry } from '../../store/with-store-retry.ts'
import type { MessageQueue } from './queue.ts'

export type StoreQueueDependencies = {
  readonly store: Store
  readonly host: string
  readonly self: ProcessIdentity
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Logger
  readonly failpoint: (name: string) => Promise<void>
  /** Ends what is left of an interrupted run; false if it may be alive. */
  readonly endRun: (message: InboxMessage) => Promise<boolean>
  /** To handle only some: platforms it can deliver to, or one conversation. */
  readonly platforms?: readonly string[]
  readonly conversation?: ConversationKey
}

type Accepting = Parameters<MessageQueue['accept']>[0]
type Waiting = {
  readonly row: Accepting & { readonly id: string; readonly acceptedAt: number }
  readonly settle: PromiseWithResolvers<{ outcome: 'accepted' | 'duplicate'; id: string }>
}

/** A queue in the database. */
export const createStoreQueue = (dependencies: StoreQueueDependencies): MessageQueue => {
  const { store, host, self, clock, ids, log, failpoint, endRun, platforms, conversation } = dependencies
  const holder: MessageHolder = { host, process: self }
  const listeners = new Set<() => void>()
  const wake = (): void => {
    for (const listener of listeners) listener()
  }
  const accepting = createGroupCommit(store)
  const isOurs = ({ holder: by }: InboxMessage): boolean => by?.host === host && isSame(by.process, self)
  /** Ends what is left of each run and requeues it; skips those that may still run. */
  const putBackAll = async (interrupted: readonly InboxMessage[]): Promise<{ putBack: number; left: number }> => {
    let putBack = 0
    let left = 0
    for (const message of interrupted) {
      // Unknown doesn't mean dead: two agents on one message are worse than one that waits.
      if (stateOf(message.holder, host) === 'cannot-tell' || !(await endRun(message))) {
        left += 1
        log.warn('an interrupted message was left alone', { id: message.id, holder: message.holder })
        continue
      }
      if (await store.inbox.transition(message.id, 'running', 'waiting', message.holder)) putBack += 1
    }
    if (putBack > 0) wake()
    return { putBack, left }
  }
  return {
    accept: async (message) => {
      const row = { ...message, text: message.text.replaceAll('\0', '\uFFFD'), id: ids(), acceptedAt: clock() }
      await failpoint('inbox.accepting')
      const answer = await accepting(row)
      if (answer.outcome === 'accepted') wake()
      await failpoint('inbox.accepted')
      return answer
    },
    claim: (lane) =>
      store.inbox.claim({
        holder,
        lane,
        ...(platforms !== undefined && { platforms }),
        ...(conversation !== undefined && { conversation }),
      }),
    began: (message, child) => store.inbox.setChild(message.id, child),
    finish: async (message, record) => {
      const end = (): Promise<boolean> =>
        store.transaction(async (inside) => {
          if (!(await inside.inbox.transition(message.id, 'running', 'done', holder))) return false
          await record(inside)
          return true
        })
      // Retry: the reply exists only in our memory.
      const finished = await withStoreRetry(end, { log, what: `the end of message ${message.id}` })
      if (finished) wake()
      return finished
    },
    putBack: async (message) => {
      await store.inbox.putBack(message.id, holder)
    },
    recover: async () => {
      const running = await store.inbox.running()
      return putBackAll(running.filter(({ holder: by }) => stateOf(by, host) !== 'alive'))
    },
    recoverOwn: async (isWorkedOn) => {
      const running = await store.inbox.running()
      return putBackAll(running.filter((message) => isOurs(message) && !isWorkedOn(message.id)))
    },
    outboxChanged: wake,
    onWake: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

const stateOf = (holder: MessageHolder | undefined, host: string): 'alive' | 'dead' | 'cannot-tell' => {
  if (holder === undefined) return 'dead'
  return holder.host === host ? liveness(holder.process) : 'cannot-tell'
}

/** Larger transactions only delay the first messages. */
const LARGEST_BATCH = 500

/**
 * A durable write costs one disk flush, whatever its size, so messages that arrive during a flush share the next one.
 * Each waits at most for the current flush and its own.
 */
const createGroupCommit = (
  store: Store,
): ((row: Waiting['row']) => Promise<{ outcome: 'accepted' | 'duplicate'; id: string }>) => {
  const waiting: Waiting[] = []
  let writing = false
  const write = async (batch: readonly Waiting[]): Promise<void> => {
    try {
      const fresh = await store.inbox.accept(batch.map(({ row }) => row))
      for (const { row, settle } of batch) {
        if (fresh.has(row.id)) settle.resolve({ outcome: 'accepted', id: row.id })
        else settle.resolve(known(store, row))
      }
    } catch (error) {
      // One row that the database rejects must not fail the others.
      if (batch.length > 1) for (const one of batch) await write([one])
      else batch[0]?.settle.reject(error)
    }
  }
  const drain = async (): Promise<void> => {
    writing = true
    while (waiting.length > 0) {
      // Read the sockets before writing: SQLite writes synchronously, so nothing arrives meanwhile, and 32,000 messages
      // over 64 connections took 32,000 flushes.
      await setImmediate()
      await write(waiting.splice(0, LARGEST_BATCH))
    }
    writing = false
  }
  return (row) => {
    const settle = Promise.withResolvers<{ outcome: 'accepted' | 'duplicate'; id: string }>()
    waiting.push({ row, settle })
    if (!writing) void drain()
    return settle.promise
  }
}

const known = async (store: Store, row: Waiting['row']): Promise<{ outcome: 'duplicate'; id: string }> => {
  const first = await store.inbox.byDelivery(row.platform, row.deliveryId)
  return { outcome: 'duplicate', id: first?.id ?? row.id }
}

/*
 * The outbox. In: replies, stored together with what they answer. Out: messages to the platform, in order, retried
 * until they are sent or refused.
 */
import { setImmediate } from 'node:timers/promises'
import { backoff } from '../../domain/backoff.ts'
import type { Clock } from '../../domain/clock.ts'
import type { Logger } from '../../process/log.ts'
import type { Redact } from '../../process/redaction/redact.ts'
import type { Reply, Store } from '../../store/store.ts'
import type { Changes } from '../changes.ts'
import { type Delivery, DeliveryError, LONGEST_PAUSE_MS } from './delivery.ts'
import { withStoreRetry } from '../../store/with-store-retry.ts'
import { splitReply } from './split.ts'

export type OutboxDependencies = {
  readonly store: Store
  readonly deliveries: ReadonlyMap<string, Delivery>
  readonly changes: Changes
  readonly clock: Clock
  readonly log: Logger
  /** Applied to platform error messages: a URL may contain the token. */
  readonly redact: Redact
  readonly failpoint: (name: string) => Promise<void>
}

export type Outbox = {
  /** Delivers what was recorded. Never throws or blocks. */
  kick(): void
  /** Resolves when no delivery is in progress; replies waiting for a retry stay recorded. */
  stop(): Promise<void>
  /** Resolves when everything deliverable is delivered. */
  idle(): Promise<void>
}

/** Concurrent replies per platform, each of another conversation: within a conversation, order is kept. */
const AT_ONCE = 50

/** Delivers recorded replies, in order per conversation, and retries until the platform accepts them. */
export const createOutbox = (dependencies: OutboxDependencies): Outbox => {
  const { store, deliveries, clock, log } = dependencies
  const platforms = [...deliveries.keys()]
  const stopping = new AbortController()
  /** By conversation. A slow platform delays only itself. */
  const onTheirWay = new Map<string, { readonly platform: string; readonly sent: Promise<void> }>()
  let looking: Promise<void> | undefined
  let again = false
  let timer: NodeJS.Timeout | undefined

  const send = (reply: Reply): void => {
    const key = keyOf(reply)
    const sent = deliver(dependencies, reply, stopping.signal)
      .catch((error: unknown) => log.error('a delivery could not be recorded', { id: reply.id, error }))
      .finally(() => {
        onTheirWay.delete(key)
        kick()
      })
    onTheirWay.set(key, { platform: reply.platform, sent })
  }
  const hasRoom = (platform: string): boolean =>
    [...onTheirWay.values()].filter((one) => one.platform === platform).length < AT_ONCE
  const look = async (): Promise<void> => {
    do {
      // Replies that are recorded or delivered at the same moment share a query.
      await setImmediate()
      again = false
      const open = platforms.filter(hasRoom)
      // Those on their way are among them. Not exactly as many: SQLite prepares a statement for each limit.
      const most = AT_ONCE * (1 + Math.ceil(onTheirWay.size / AT_ONCE))
      const due = open.length === 0 ? [] : await store.outbox.due(open, clock(), most, LONGEST_PAUSE_MS)
      for (const reply of due) {
        if (stopping.signal.aborted) return
        if (!onTheirWay.has(keyOf(reply)) && hasRoom(reply.platform)) send(reply)
      }
    } while (again && !stopping.signal.aborted)
    await sleepUntilDue()
  }
  const sleepUntilDue = async (): Promise<void> => {
    // The end of a delivery checks again. Only a retry may be due before, and may be this late.
    const pause = onTheirWay.size > 0 ? LONGEST_DELAY_MS : await untilNextDue()
    clearTimeout(timer)
    if (pause === undefined || stopping.signal.aborted) return
    timer = setTimeout(kick, pause).unref()
  }
  const untilNextDue = async (): Promise<number | undefined> => {
    const next = await store.outbox.nextDueAt(platforms)
    return next === undefined ? undefined : Math.max(50, Math.min(next - clock(), LONGEST_SLEEP_MS))
  }
  const kick = (): void => {
    again = true
    if (stopping.signal.aborted || platforms.length === 0) return
    looking ??= look()
      .catch((error: unknown) => {
        // The store is unavailable: replies stay recorded, and the next check finds them.
        log.error('replies could not be looked up', { error })
        if (!stopping.signal.aborted) timer = setTimeout(kick, RETRY_STORE_MS).unref()
      })
      .finally(() => {
        looking = undefined
        // Kicked between the last check and here.
        if (again) kick()
      })
  }
  const isBusy = (): boolean => looking !== undefined || onTheirWay.size > 0
  const settled = async (): Promise<void> => {
    await looking
    await Promise.all([...onTheirWay.values()].map(({ sent }) => sent))
  }
  return {
    kick,
    idle: async () => {
      while (isBusy()) await settled()
    },
    stop: async () => {
      stopping.abort()
      clearTimeout(timer)
      await settled()
    },
  }
}

const keyOf = ({ platform, conversationId }: Reply): string => `${platform}\n${conversationId}`

const LONGEST_SLEEP_MS = 60_000
const LONGEST_DELAY_MS = 1_000
const RETRY_STORE_MS = 5_000

const deliver = async (
  { store, deliveries, changes, clock, log, redact, failpoint }: OutboxDependencies,
  reply: Reply,
  stopping: AbortSignal,
): Promise<void> => {
  const delivery = deliveries.get(reply.platform)
  if (delivery === undefined) return
  const { id, platform, conversationId, role, text, actions } = reply
  const parts = splitReply(text, delivery.limit)
  // It was sent: a brief store outage must not cause a duplicate.
  const record = (patch: Parameters<Store['outbox']['update']>[1]): Promise<void> =>
    withStoreRetry(() => store.outbox.update(id, patch), { log, what: `the delivery of reply ${id}` })
  try {
    const answered = reply.inboxId === undefined ? undefined : await store.inbox.get(reply.inboxId)
    for (let part = reply.sentParts; part < parts.length; part++) {
      if (stopping.aborted) return
      await failpoint('reply.sending')
      await delivery.send({
        id: `${id}.${part}`,
        conversationId,
        replyTo: answered?.details.replyTo,
        role,
        text: parts[part] ?? '',
        actions: part + 1 === parts.length ? actions : undefined,
        part: part + 1,
        parts: parts.length,
      })
      await failpoint('reply.sent')
      if (part + 1 < parts.length) await record({ sentParts: part + 1 })
    }
    await record({ state: 'sent', sentParts: parts.length, sentAt: clock(), error: undefined })
    changes.emit({ type: 'reply', platform, conversationId, id, role, text })
    await failpoint('reply.recorded')
  } catch (error) {
    await postpone({ store, clock, log, redact }, reply, error)
  }
}

/** *Refused* is final for this reply, and the next ones continue; *unreachable* is retried forever. */
const postpone = async (
  { store, clock, log, redact }: Pick<OutboxDependencies, 'store' | 'clock' | 'log' | 'redact'>,
  reply: Reply,
  error: unknown,
): Promise<void> => {
  const { id, platform, conversationId } = reply
  const attempts = reply.attempts + 1
  const message = redact(error instanceof Error ? error.message : String(error))
  if (error instanceof DeliveryError && error.kind === 'refused') {
    log.error('a reply was refused by its platform', { id, platform, conversationId, error })
    await store.outbox.update(id, { state: 'failed', attempts, error: message })
    return
  }
  const asked = error instanceof DeliveryError ? error.retryAfterMs : undefined
  const pause = Math.max(asked ?? 0, backoff(attempts, { firstMs: 1_000, longestMs: 60_000 }))
  log.warn('a reply could not be delivered yet', { id, platform, conversationId, attempts, pause, error })
  await store.outbox.update(id, { attempts, nextAttemptAt: clock() + pause, error: message })
}

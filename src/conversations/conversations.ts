import { toAppError } from '../domain/errors.ts'
import type { IncomingMessage, Lane } from '../domain/message.ts'
import type { ConversationKey, InboxMessage } from '../store/store.ts'
import { laneOf } from './commands/chat.ts'
import type { ConversationsContext } from './context.ts'
import { createEndedRunLook } from './ended-runs.ts'
import { type Handled, handleMessage } from './handle-message.ts'
import { type Leftovers, nothingLeft } from './leftovers.ts'
import { waitingNotice } from './notices.ts'
import type { Outbox } from './outbox.ts'
import { about, say } from './replies.ts'
import { createQuestions } from './questions.ts'
import { stopElsewhere, stopLeftovers, type Stopped } from './stop-run.ts'
import { createTurns } from './turns.ts'

/** Takes messages in, works on them, answers them. The whole room seen from outside. */
export type Conversations = {
  /** Durable when it answers. */
  accept(message: IncomingMessage): Promise<{ outcome: 'accepted' | 'duplicate'; id: string }>
  /** Puts back what a crash interrupted, then works. */
  start(): Promise<void>
  /** Takes up nothing new, lets what runs finish up to a time, then puts the rest back. */
  stop(graceMs: number): Promise<{ finished: number; left: number }>
  /** `/stop`: ends the run of this conversation and every process that it or an earlier one started. */
  stopRun(key: ConversationKey): Promise<Stopped>
  /** Looks again: another process of this home may have recorded something. */
  wake(): void
}

type Running = {
  readonly message: InboxMessage
  readonly cancel: AbortController
  readonly ended: Promise<void>
  /** Known when it has ended. */
  left: Leftovers
}

export type ConversationsOptions = {
  readonly outbox: Outbox
  /** Told of each message's end. */
  readonly onHandled?: (message: InboxMessage, handled: Handled) => void
  /** How often to look for what nobody woke us for. */
  readonly tickMs?: number
}

export const createConversations = (
  context: ConversationsContext,
  { outbox, onHandled, tickMs = TICK_MS }: ConversationsOptions,
): Conversations => {
  const { isolation, queue, changes } = context
  const { store, settings, clock, log } = isolation
  const running = new Map<string, Running>()
  const turns = createTurns()
  const questions = createQuestions()
  let working = false
  let pumping: Promise<void> | undefined
  let again = false
  let told: ReadonlySet<string> = new Set()
  let looking = false
  let ticking: NodeJS.Timeout | undefined
  let unsubscribe: (() => void) | undefined

  /** Asked anew each time: it changes while we wait. */
  const isWorking = (): boolean => working
  const inLane = (lane: Lane): number => [...running.values()].filter((one) => one.message.lane === lane).length

  const begin = (message: InboxMessage): void => {
    const cancel = new AbortController()
    const { platform, conversationId, id } = message
    const key = { platform, conversationId }
    changes.emit({ type: 'message', ...key, id, state: 'running' })
    const toItsEnd = async (): Promise<void> => {
      try {
        const onLeft = (left: Leftovers): void => {
          one.left = left
        }
        const run = { signal: cancel.signal, turns, questions, stop: () => stopRun(key), onLeft }
        const handled = await handleMessage(context, message, run)
        changes.emit({ type: 'message', ...key, id, state: handled === 'put-back' ? 'waiting' : 'done' })
        onHandled?.(message, handled)
      } catch (error) {
        // The store is away. The row still says that it is ours; the tick puts it back when the store is back.
        log.error('a message was worked on and its end could not be recorded', { id, error })
      } finally {
        running.delete(id)
        // What its agent asked and did not wait for is not the question that the next `/allow` answers.
        cancel.abort('ended')
        outbox.kick()
        pump()
      }
    }
    const ended = Promise.withResolvers<void>()
    const one: Running = { message, cancel, ended: ended.promise, left: nothingLeft }
    running.set(id, one)
    void toItsEnd().then(ended.resolve)
  }

  const takeAll = async (): Promise<void> => {
    do {
      again = false
      if (looking) await putBackForgotten()
      for (const lane of ['at-once', 'turn'] as const) {
        const most = lane === 'turn' ? settings.concurrentConversations : Infinity
        while (isWorking() && inLane(lane) < most) {
          const message = await queue.claim(lane)
          if (message === undefined) break
          begin(message)
        }
      }
    } while (again && isWorking())
    await tellThoseWhoWait()
  }

  const pump = (): void => {
    if (!working) return
    if (pumping !== undefined) {
      again = true
      return
    }
    pumping = takeAll()
      .catch((error: unknown) => log.error('messages could not be taken up', { error: toAppError(error).message }))
      .finally(() => {
        pumping = undefined
        // A wake between the last look and this line.
        if (again) pump()
      })
  }

  /** Only while the house is full: whoever waits long is told so, once. */
  const tellThoseWhoWait = async (): Promise<void> => {
    if (inLane('turn') < settings.concurrentConversations) return
    const waiting = await store.inbox.waiting(clock() - LONG_WAIT_MS, MOST_TOLD)
    const untold = waiting.filter(({ id }) => !told.has(id))
    for (const message of untold) {
      const text = waitingNotice(inLane('turn'))
      await say(context, store, about(message), [{ key: 'waiting', role: 'system', text }])
    }
    // It is said once anyway; but a write for each of them at every end of a message was most of a long queue's work.
    told = new Set(waiting.map(({ id }) => id))
    if (untold.length > 0) outbox.kick()
  }

  const lookOnce = createEndedRunLook(context)
  let lookingAtRuns: Promise<void> | undefined
  const lookAtEndedRuns = (): Promise<void> => {
    lookingAtRuns ??= lookOnce()
      .catch((error: unknown) => log.warn('ended runs could not be looked at', { error: toAppError(error).message }))
      .finally(() => (lookingAtRuns = undefined))
    return lookingAtRuns
  }

  const notLookedAt = (error: unknown): void => log.warn('interrupted messages could not be looked at', { error })

  /** Among the claims and never beside one: a row that is being claimed is ours before anybody here knows of it. */
  const putBackForgotten = async (): Promise<void> => {
    looking = false
    await queue.recoverOwn((id) => running.has(id)).catch(notLookedAt)
  }

  /** For what other processes recorded or left: a look at two indexes, no program is started. */
  const tick = async (): Promise<void> => {
    await queue.recover().catch(notLookedAt)
    looking = true
    pump()
    await lookAtEndedRuns()
    outbox.kick()
  }

  const stopRun = async (key: ConversationKey): Promise<Stopped> => {
    const mine = ({ platform, conversationId, lane }: InboxMessage): boolean =>
      platform === key.platform && conversationId === key.conversationId && lane === 'turn'
    const own = [...running.values()].find(({ message }) => mine(message))
    if (own !== undefined) {
      own.cancel.abort('stop')
      await own.ended
      return { outcome: 'stopped', left: own.left }
    }
    const elsewhere = (await store.inbox.running()).find(mine)
    return elsewhere === undefined ? stopLeftovers(context, key) : stopElsewhere(context, elsewhere)
  }

  return {
    accept: async (message) => {
      const lane = message.kind === 'message' ? laneOf(message.text) : 'turn'
      const answer = await queue.accept({ ...message, lane })
      if (answer.outcome === 'accepted') {
        const { platform, conversationId } = message
        changes.emit({ type: 'message', platform, conversationId, id: answer.id, state: 'waiting' })
      }
      return answer
    },
    start: async () => {
      working = true
      unsubscribe = queue.onWake(() => {
        pump()
        outbox.kick()
      })
      ticking = setInterval(() => void tick(), tickMs).unref()
      await queue.recover()
      pump()
      void lookAtEndedRuns()
      outbox.kick()
    },
    stop: async (graceMs) => {
      working = false
      unsubscribe?.()
      clearInterval(ticking)
      await pumping
      const all = [...running.values()]
      const finished = await settledWithin(all, graceMs)
      const left = all.filter((one) => !finished.has(one))
      for (const { cancel } of left) cancel.abort('shutdown')
      await Promise.all(left.map(({ ended }) => ended))
      await lookingAtRuns
      await outbox.stop()
      return { finished: finished.size, left: left.length }
    },
    stopRun,
    wake: () => {
      pump()
      outbox.kick()
    },
  }
}

const TICK_MS = 20_000
const LONG_WAIT_MS = 30_000
const MOST_TOLD = 100

const settledWithin = async (all: readonly Running[], graceMs: number): Promise<Set<Running>> => {
  const finished = new Set<Running>()
  let timer: NodeJS.Timeout | undefined
  const time = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, graceMs)
  })
  const everything = Promise.all(all.map(async (one) => one.ended.then(() => finished.add(one))))
  await Promise.race([everything, time])
  clearTimeout(timer)
  return new Set(finished)
}

/*
 * Conversations. In: messages that a platform has accepted. Out: replies in the outbox, in order. In between, each
 * message is answered as a command or run by an agent.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { AppError, toAppError } from '../domain/errors.ts'
import type { IncomingMessage, Lane } from '../domain/message.ts'
import type { ConversationKey, InboxMessage } from '../store/store.ts'
import { laneOf } from './answer-command.ts'
import type { ConversationsContext } from './context.ts'
import { createEndedRunLook, type TellLater } from '../runs/ended-runs.ts'
import { giveUpOn, handleMessage } from './handle-message.ts'
import type { Handled, MessageControls } from './message-controls.ts'
import { type Leftovers, nothingLeft } from '../runs/leftovers.ts'
import * as notices from './notices.ts'
import type { Outbox } from './outbox/outbox.ts'
import { replyTarget, recordReplies } from './outbox/replies.ts'
import { createRunSlots, type RunSlot, type WhileWaiting } from './inbox/run-slots.ts'
import { createQuestions } from './questions.ts'
import { createRunLimit } from '../runs/time-limit.ts'
import { stopElsewhere, stopLeftovers, stoppedRun, type Stopped } from '../runs/stop-run.ts'
import { createTurns } from '../runs/turns.ts'

/** Accepts messages, handles them and replies. This folder's public interface. */
export type Conversations = {
  /** Resolves once stored. */
  accept(message: IncomingMessage): Promise<{ outcome: 'accepted' | 'duplicate'; id: string }>
  /** Requeues what a crash interrupted, then starts. */
  start(): Promise<void>
  /** Starts nothing new, lets runs finish within the time, then requeues the rest. */
  stop(graceMs: number): Promise<{ finished: number; left: number }>
  /** `/stop`: ends the conversation's run and every process that it or an earlier one started. */
  stopRun(key: ConversationKey): Promise<Stopped>
  /** Call if another process of this home may have recorded something. */
  wake(): void
}

type Running = {
  readonly message: InboxMessage
  readonly cancel: AbortController
  /** Undefined for the `at-once` lane. */
  readonly place: RunSlot | undefined
  /** False: cancelled but still running. */
  readonly ended: Promise<boolean>
  /** Set once it has ended. */
  left: Leftovers
}

export type ConversationsOptions = {
  readonly outbox: Outbox
  /** Called after each message. */
  readonly onHandled?: (message: InboxMessage, handled: Handled) => void
  /** How often to check without a wake-up. */
  readonly tickMs?: number
  /** How long a run may take to end once cancelled. */
  readonly endMs?: number
}

export const createConversations = (
  context: ConversationsContext,
  { outbox, onHandled, tickMs = TICK_MS, endMs = END_MS }: ConversationsOptions,
): Conversations => {
  const { isolation, queue, changes } = context
  const { store, settings, clock, log } = isolation
  const running = new Map<string, Running>()
  const turns = createTurns()
  const questions = createQuestions()
  const places = createRunSlots(settings.concurrentConversations, () => pump())
  let working = false
  let pumping: Promise<void> | undefined
  let again = false
  let told: ReadonlySet<string> = new Set()
  let looking = false
  let ticking: NodeJS.Timeout | undefined
  let unsubscribe: (() => void) | undefined

  /** Read again each time: it changes while we wait. */
  const isWorking = (): boolean => working

  const begin = (message: InboxMessage, place: RunSlot | undefined): void => {
    const cancel = new AbortController()
    const { signal } = cancel
    const { platform, conversationId, id } = message
    const key = { platform, conversationId }
    const limit = createRunLimit(settings.runMinutes * 60_000, () => cancel.abort('time-limit'))
    const whileWaiting: WhileWaiting = (wait, onFull) => {
      // The answer won't come, or comes too late.
      if (!isWorking()) cancel.abort('shutdown')
      return limit.pausedFor(() => (place === undefined ? wait() : place.whileWaiting(wait, { signal, onFull })))
    }
    changes.emit({ type: 'message', ...key, id, state: 'running' })
    const runToCompletion = async (): Promise<boolean> => {
      let hasEnded = true
      try {
        const onLeft = (left: Leftovers): void => {
          one.left = left
        }
        const run: MessageControls = { signal, turns, questions, whileWaiting, stop: () => stopRun(key), onLeft }
        const handled = await endedWithin(handleMessage(context, message, run), signal, endMs, () => {
          hasEnded = false
          return giveUpOn(context, message, signal)
        })
        changes.emit({ type: 'message', ...key, id, state: handled === 'put-back' ? 'waiting' : 'done' })
        onHandled?.(message, handled)
      } catch (error) {
        // The store is unavailable. The row is still ours; the tick requeues it once the store is back.
        log.error('a message was worked on and its end could not be recorded', { id, error })
      } finally {
        running.delete(id)
        limit.end()
        place?.leave()
        outbox.kick()
        pump()
      }
      return hasEnded
    }
    const ended = Promise.withResolvers<boolean>()
    const one: Running = { message, cancel, place, ended: ended.promise, left: nothingLeft }
    running.set(id, one)
    void runToCompletion().then(ended.resolve)
  }

  /** False if there is no message or no free slot. */
  const takeOne = async (lane: Lane): Promise<boolean> => {
    if (lane === 'turn' && !places.available()) return false
    // Before claiming the message: a run that resumes meanwhile must not take the same slot.
    const place = lane === 'turn' ? places.take() : undefined
    const message = await queue.claim(lane).catch((error: unknown) => {
      place?.unused()
      throw error
    })
    if (message === undefined) place?.unused()
    else begin(message, place)
    return message !== undefined
  }

  const takeAll = async (): Promise<void> => {
    do {
      // The end of a message wakes us twice, and many may arrive at the same moment: one look for all of them.
      await nextTurn()
      again = false
      if (looking) await putBackForgotten()
      for (const lane of ['at-once', 'turn'] as const) {
        while (isWorking() && (await takeOne(lane)));
      }
    } while (again && isWorking())
    await notifyWaiting()
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
        // Woken between the last check and here.
        if (again) pump()
      })
  }

  let notifyAgainAt = Number.NEGATIVE_INFINITY
  /** Only while all slots are taken. Notifies each long wait once. */
  const notifyWaiting = async (): Promise<void> => {
    if (places.available() || clock() < notifyAgainAt) return
    notifyAgainAt = clock() + NOTIFY_EVERY_MS
    const waiting = await store.inbox.waiting(clock() - LONG_WAIT_MS, MOST_TOLD)
    const untold = waiting.filter(({ id }) => !told.has(id))
    for (const message of untold) {
      const text = notices.waitingNotice(places.taken())
      await recordReplies(context, store, replyTarget(message), [{ key: 'waiting', role: 'system', text }])
    }
    // The reply key prevents duplicates, but a write per message each time one ends was most of a long queue's work.
    told = new Set(waiting.map(({ id }) => id))
    if (untold.length > 0) outbox.kick()
  }

  const lookOnce = createEndedRunLook(context, tellLater(context))
  let lookingAtRuns: Promise<void> | undefined
  const tellOfEndedRuns = async (): Promise<void> => {
    try {
      if (await lookOnce()) queue.outboxChanged()
    } catch (error) {
      log.warn('ended runs could not be looked at', { error: toAppError(error).message })
    }
  }
  const lookAtEndedRuns = (): Promise<void> => {
    lookingAtRuns ??= tellOfEndedRuns().finally(() => (lookingAtRuns = undefined))
    return lookingAtRuns
  }

  const notLookedAt = (error: unknown): void => log.warn('interrupted messages could not be looked at', { error })

  /** Call only between claims: a row being claimed already has our ID, but isn't in `running` yet. */
  const putBackForgotten = async (): Promise<void> => {
    looking = false
    await queue.recoverOwn((id) => running.has(id)).catch(notLookedAt)
  }

  /** For what other processes recorded or left: reads two indexes, starts no program. */
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
      if (await own.ended) return stoppedRun(context, key, own.left)
      throw new AppError('busy', "the run was asked to stop, but hasn't ended yet", {
        remedy: 'its worktree stays reserved until it ends; restart the server if that takes too long',
      })
    }
    const elsewhere = (await store.inbox.running()).find(mine)
    return elsewhere === undefined ? stopLeftovers(context, key) : stopElsewhere(context, elsewhere)
  }

  return {
    accept: async (message) => {
      const isAnswer = message.kind === 'message' && questions.isAnswer(message, message.text)
      const lane = isAnswer ? 'at-once' : message.kind === 'message' ? laneOf(message.text) : 'turn'
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
      // A waiting run would use up the whole grace period, and answers are no longer accepted.
      for (const { place, cancel } of all) if (place?.isWaiting() === true) cancel.abort('shutdown')
      const finished = await settledWithin(
        all.filter(({ cancel }) => !cancel.signal.aborted),
        graceMs,
      )
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
/** Killing a stubborn process tree takes up to half of it. */
const END_MS = 60_000
const LONG_WAIT_MS = 30_000
/** Not at every end of a run: with 10,000 waiting, this was one of the most expensive statements. */
const NOTIFY_EVERY_MS = 1_000
const MOST_TOLD = 100

/** The result of `work`, or `otherwise` if it hasn't ended this long after cancellation. */
const endedWithin = async <T>(
  work: Promise<T>,
  signal: AbortSignal,
  endMs: number,
  otherwise: () => Promise<T>,
): Promise<T> => {
  const overdue = Promise.withResolvers<undefined>()
  let timer: NodeJS.Timeout | undefined
  const onAbort = (): void => {
    timer = setTimeout(() => overdue.resolve(undefined), endMs)
  }
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    const ended = await Promise.race([work.then((value) => ({ value })), overdue.promise])
    return ended === undefined ? await otherwise() : ended.value
  } finally {
    signal.removeEventListener('abort', onAbort)
    clearTimeout(timer)
    // Nobody awaits it now, and an unhandled rejection would end the process.
    work.catch(() => undefined)
  }
}

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

/** Reports what ended runs did in the thread that started them. */
const tellLater =
  (context: ConversationsContext): TellLater =>
  async (store, { id, platform, conversationId, data }, { codebase, ended, planted }) => {
    const texts = [
      ...notices.endedRunNotices(codebase, [ended]),
      ...(planted.length === 0 ? [] : [notices.betweenRunsNotice(codebase, planted)]),
    ]
    const now = context.isolation.clock()
    const said = texts.map((text, n) => ({ key: `late:${id}:${now}:${n}`, role: 'system', text }) as const)
    await recordReplies(context, store, { platform, conversationId, inboxId: data.messageId }, said)
  }

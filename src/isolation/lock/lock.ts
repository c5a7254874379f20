/*
 * One writer per repository, across processes. In: a repository and what to do. Out: its result, with the lock held
 * meanwhile.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { realpathSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '../../domain/clock.ts'
import { AppError } from '../../domain/errors.ts'
import { openLockFile } from './lock-file.ts'
import type { LockFile, LockHolder } from './lock-file.ts'

export type LockOptions = {
  /** Why the lock is held, in words that finish "this process is …"; other processes show it */
  readonly purpose: string
  readonly signal?: AbortSignal
  /** Without it, waits indefinitely */
  readonly timeoutMs?: number
  /** Called once when the wait is long enough to explain */
  readonly onWait?: (holder: LockHolder | undefined) => void
}

export type RepositoryLock = {
  readonly withRepositoryLock: <T>(commonDir: string, options: LockOptions, work: () => Promise<T>) => Promise<T>
}

export type RepositoryLockDependencies = {
  readonly clock: Clock
  /** Between 0 and 1, for jitter */
  readonly random: () => number
}

/**
 * One at a time per repository: first a queue in this process, in order of arrival, then the lock file between
 * processes. Create only one per process, in the composition root.
 */
export const createRepositoryLock = ({ clock, random }: RepositoryLockDependencies): RepositoryLock => {
  const queues = new Map<string, Queue>()
  const held = new AsyncLocalStorage<readonly Held[]>()

  const withRepositoryLock = async <T>(commonDir: string, options: LockOptions, work: () => Promise<T>): Promise<T> => {
    // Synchronous: the thread pool answers in any order, and the queue must keep the order of arrival.
    const key = realpathSync.native(commonDir)
    const outer = held.getStore() ?? []
    if (outer.some((lock) => lock.key === key && lock.active)) {
      // It would wait for itself forever.
      throw new AppError('unexpected', `the lock of ${key} is already held by this flow (for ${options.purpose})`)
    }
    const queue = queues.get(key) ?? createQueue(openLockFile(key))
    queues.set(key, queue)
    const { file } = queue
    const wait = createWait(options, () => queue.holder ?? file.holder())
    let turn: Turn | undefined
    try {
      turn = await takeTurn(queue, wait)
      await takeFile(queue, wait, { clock, random })
      wait.end()
      const holder = { pid: process.pid, purpose: options.purpose, since: clock() }
      queue.holder = holder
      const announcing = setTimeout(() => file.announce(holder), ANNOUNCE_AFTER_MS)
      const here: Held = { key, active: true }
      try {
        return await held.run([...outer, here], work)
      } finally {
        clearTimeout(announcing)
        here.active = false
        queue.holder = undefined
        queue.wanted = file.wasWanted()
        queue.releasedAt = clock()
      }
    } finally {
      wait.end()
      // Without a turn, another one may have it.
      if (turn !== undefined) file.release()
      turn?.done()
      if (!queue.busy && queues.get(key) === queue) {
        file.close()
        queues.delete(key)
      }
    }
  }
  return { withRepositoryLock }
}

/** `active` ends with the hold: work started under the lock that outlives it may take it again. */
type Held = { readonly key: string; active: boolean }

type Queue = {
  /** Open until nobody waits any more: opening it took longer than taking the lock */
  readonly file: LockFile
  busy: boolean
  readonly waiting: (() => void)[]
  holder: LockHolder | undefined
  /** Since when this process has held the lock continuously */
  sliceStart: number | undefined
  releasedAt: number
  /** Another process tried to take it while we had it */
  wanted: boolean
}

const createQueue = (file: LockFile): Queue => ({
  file,
  busy: false,
  waiting: [],
  holder: undefined,
  sliceStart: undefined,
  releasedAt: Number.NEGATIVE_INFINITY,
  wanted: false,
})

type Turn = { readonly done: () => void }

const takeTurn = async (queue: Queue, wait: Wait): Promise<Turn> => {
  const done = () => {
    const next = queue.waiting.shift()
    if (next === undefined) queue.busy = false
    else next()
  }
  wait.check()
  if (!queue.busy) {
    queue.busy = true
    return { done }
  }
  const { promise, resolve } = Promise.withResolvers<void>()
  queue.waiting.push(resolve)
  try {
    await wait.orFail(promise)
    return { done }
  } catch (error) {
    const place = queue.waiting.indexOf(resolve)
    if (place >= 0) queue.waiting.splice(place, 1)
    // It was called up just as it gave up: pass the turn on.
    else done()
    throw error
  }
}

/** Longest pause between two tries: what a hand-over between busy processes costs. */
const LONGEST_PAUSE_MS = 25
/**
 * A process with a full queue would pass the lock to itself forever. After this long, and only if another process tried
 * meanwhile, it waits one pause. (Yielding every time would cost 64 short creations a second of idling.)
 */
const SLICE_MS = 250

const takeFile = async (queue: Queue, wait: Wait, { clock, random }: RepositoryLockDependencies): Promise<void> => {
  const { file } = queue
  const goesOn = queue.sliceStart !== undefined && clock() - queue.releasedAt < LONGEST_PAUSE_MS
  if (!goesOn) queue.sliceStart = undefined
  else if (queue.wanted && clock() - (queue.sliceStart ?? 0) >= SLICE_MS) {
    queue.sliceStart = undefined
    await wait.orFail(delay(LONGEST_PAUSE_MS + 5))
  }
  for (let pause = 2; !file.tryTake(); pause = Math.min(LONGEST_PAUSE_MS, pause * 1.6)) {
    queue.sliceStart = undefined
    file.markWanted(clock())
    await wait.orFail(delay(pause * (0.5 + random() / 2)))
    wait.check()
  }
  queue.sliceStart ??= clock()
}

type Wait = {
  /** Settles with the promise, or fails as soon as the wait is cancelled or times out */
  readonly orFail: <T>(promise: Promise<T>) => Promise<T>
  readonly check: () => void
  readonly end: () => void
}

const EXPLAIN_AFTER_MS = 500
/** Shorter holds aren't worth a file. Short enough that whoever explains its wait finds it. */
const ANNOUNCE_AFTER_MS = 100

const createWait = (options: LockOptions, holder: () => LockHolder | undefined): Wait => {
  const { signal, timeoutMs, onWait } = options
  const failure = Promise.withResolvers<never>()
  failure.promise.catch(() => undefined)
  let failed: AppError | undefined
  const fail = (error: AppError) => {
    failed ??= error
    failure.reject(failed)
  }
  const onAbort = () =>
    fail(new AppError('cancelled', `cancelled while waiting for the repository (${options.purpose})`))
  const explain = onWait === undefined ? undefined : setTimeout(() => onWait(holder()), EXPLAIN_AFTER_MS)
  const limit = timeoutMs === undefined ? undefined : setTimeout(() => fail(busy(holder())), timeoutMs)
  signal?.addEventListener('abort', onAbort, { once: true })
  if (signal?.aborted === true) onAbort()
  return {
    orFail: (promise) => Promise.race([promise, failure.promise]),
    check: () => {
      if (failed !== undefined) throw failed
    },
    end: () => {
      clearTimeout(explain)
      clearTimeout(limit)
      signal?.removeEventListener('abort', onAbort)
    },
  }
}

const busy = (holder: LockHolder | undefined): AppError => {
  const who = holder === undefined ? 'another process' : `process ${holder.pid} (${holder.purpose})`
  return new AppError('busy', `the repository is in use by ${who}`, { remedy: 'try again when it has finished' })
}

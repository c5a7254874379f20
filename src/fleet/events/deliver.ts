/*
 * Hooks. In: the fleet's events, and the hooks of `config.yaml`. Out: each hook gets the events that it asks for, in
 * order and at least once. `run-command.ts` and `post-webhook.ts` are two of the three things that a hook can do.
 */
import { backoff } from '../../domain/backoff.ts'
import { hookKey, hookLabel } from '../../domain/config/hooks.ts'
import { type EventRecord, isWanted } from '../../domain/fleet/event-record.ts'
import { liveness } from '../../process/identity.ts'
import { isSame } from '../../process/tree.ts'
import { killRun } from '../../process/kill.ts'
import { hookMark } from '../../process/run-mark.ts'
import type { HookPatch, HookState } from '../../store/fleet/store.ts'
import { attempt } from './attempt.ts'
import type { HookContext, PlacedHook } from './hook.ts'

/** With the pauses below, about ten minutes. */
const MAX_ATTEMPTS = 8
const PAUSES = { firstMs: 5_000, longestMs: 600_000 }

/** Another process is delivering. */
const BUSY_MS = 1_000

export type Delivered =
  | { readonly outcome: 'up-to-date' | 'stopped' }
  /** A failed attempt is due again, or another process is delivering. */
  | { readonly outcome: 'later'; readonly afterMs: number }

/**
 * Delivers what is recorded, until the hook has everything or fails. Only one process does so at a time. `stopping`:
 * finish what is being delivered, and begin nothing new. `abort`: end that, too; it is delivered again.
 */
export const deliverTo = async (
  context: HookContext,
  placed: PlacedHook,
  { from, stopping, abort }: { readonly from: number; readonly stopping: AbortSignal; readonly abort: AbortSignal },
): Promise<Delivered> => {
  const { store, host, self } = context.isolation
  const key = hookKey(placed.hook)
  if (!(await claim(context, placed, await store.hooks.ensure(host, key, from)))) {
    return { outcome: 'later', afterMs: BUSY_MS }
  }
  try {
    for (;;) {
      if (stopping.aborted) return { outcome: 'stopped' }
      const done = await deliverNext(context, placed, abort)
      if (done !== undefined) return done
    }
  } finally {
    await store.hooks.claim(host, key, self, undefined)
  }
}

/** False if another live process has it; unknown counts as alive. */
const claim = async (context: HookContext, { hook }: PlacedHook, { key, holder }: HookState): Promise<boolean> => {
  const { store, host, self, home, clock } = context.isolation
  if (holder !== undefined && !isSame(holder, self) && liveness(holder) !== 'dead') return false
  if (!(await store.hooks.claim(host, key, holder, self))) return false
  // The process that died may have left its command running.
  if (holder !== undefined && hook.action.kind === 'command') {
    await killRun([hookMark(home, key)], { graceMs: 0, clock })
  }
  return true
}

/** How many events to look at at once. */
const PAGE = 100

/** Undefined if there may be more. */
const deliverNext = async (
  context: HookContext,
  placed: PlacedHook,
  abort: AbortSignal,
): Promise<Delivered | undefined> => {
  const { store, host, clock } = context.isolation
  const key = hookKey(placed.hook)
  const state = await store.hooks.ensure(host, key, 0)
  const page = await store.events.page({ after: state.position, limit: PAGE })
  const last = page.at(-1)
  if (last === undefined) return { outcome: 'up-to-date' }
  const next = page.find((record) => isWanted(record, placed.hook.on))
  if (next === undefined) return update(context, placed, { position: last.number })
  const pause = state.nextAttemptAt - clock()
  // A longer pause than we ever make: the clock was set back.
  if (pause > 0 && pause <= PAUSES.longestMs) return { outcome: 'later', afterMs: pause }
  const outcome = await attempt(context, placed, next, abort)
  if (outcome.kind === 'aborted') return { outcome: 'stopped' }
  if (outcome.kind === 'failed') return failed(context, placed, { state, next, why: outcome.why })
  if (outcome.kind === 'recorded') return undefined
  return update(context, placed, { position: next.number, attempts: 0, nextAttemptAt: 0, failure: undefined })
}

const update = async (
  { isolation: { store, host, self } }: HookContext,
  { hook }: PlacedHook,
  patch: HookPatch,
): Promise<Delivered | undefined> =>
  (await store.hooks.update(host, hookKey(hook), self, patch)) ? undefined : { outcome: 'later', afterMs: BUSY_MS }

/** Tried again later, or given up: then later events are delivered. */
const failed = async (
  context: HookContext,
  placed: PlacedHook,
  { state, next, why }: { readonly state: HookState; readonly next: EventRecord; readonly why: string },
): Promise<Delivered | undefined> => {
  const { store, host, self, clock, log } = context.isolation
  const hook = hookLabel(placed.hook, placed.at)
  const attempts = state.attempts + 1
  const failure = { at: clock(), error: why }
  if (attempts < MAX_ATTEMPTS) {
    const pause = backoff(attempts, PAUSES)
    log.warn('a hook failed and will be tried again', { hook, event: next.number, attempts, pause, why })
    const lost = await update(context, placed, { attempts, nextAttemptAt: clock() + pause, failure })
    return lost ?? { outcome: 'later', afterMs: pause }
  }
  log.error('a hook failed at every attempt; it never gets this event', { hook, event: next.number, attempts, why })
  return store.transaction(async (inside) => {
    const skipped = { position: next.number, attempts: 0, nextAttemptAt: 0, failure }
    if (!(await inside.hooks.update(host, state.key, self, skipped))) return { outcome: 'later', afterMs: BUSY_MS }
    await context.notify(inside, { kind: 'hook-failed', hook, event: next.number, why })
    return undefined
  })
}

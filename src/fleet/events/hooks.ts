import { type HookSettings, hookKey, hookLabel } from '../../domain/config/hooks.ts'
import { toAppError } from '../../domain/errors.ts'
import { type Delivered, deliverTo } from './deliver.ts'
import type { HookContext, PlacedHook } from './hook.ts'

/** The server's delivery to hooks. */
export type Hooks = {
  start(): Promise<void>
  /** Delivers what was recorded. Never throws or blocks. */
  kick(): void
  /** Begins nothing new. What is being delivered may take this long; then it is ended, and delivered again later. */
  stop(graceMs: number): Promise<void>
}

/** A process that couldn't wake us may have recorded something. One row is read for it. */
const IDLE_MS = 60_000
/** The store is unavailable. */
const RETRY_MS = 5_000

/** A loop for each hook, so that none delays another. */
export const createHooks = (context: HookContext): Hooks => {
  const { store, log } = context.isolation
  const stopping = new AbortController()
  const aborting = new AbortController()
  const lanes: ReturnType<typeof createLane>[] = []
  let unsubscribe: (() => void) | undefined
  const kick = (): void => {
    for (const lane of lanes) lane.kick()
  }
  return {
    kick,
    start: async () => {
      const from = await addNewHooks(context)
      const signals = { stopping: stopping.signal, abort: aborting.signal }
      for (const placed of placedHooks(context)) {
        const deliver = (): Promise<Delivered> => deliverTo(context, placed, { from, ...signals })
        const onError = (error: unknown): void =>
          log.error('a hook could not be served', {
            hook: hookLabel(placed.hook, placed.at),
            error: toAppError(error).message,
          })
        lanes.push(createLane(deliver, { stopping: stopping.signal, onError }))
      }
      unsubscribe = store.events.onRecorded(kick)
      kick()
    },
    stop: async (graceMs) => {
      stopping.abort()
      unsubscribe?.()
      const grace = setTimeout(() => aborting.abort(), graceMs)
      await Promise.all(lanes.map((lane) => lane.ended()))
      clearTimeout(grace)
    },
  }
}

/** For a process without a server: one attempt for each event, until a hook fails. `from`: where a new hook starts. */
export const deliverOnce = async (
  context: HookContext,
  { from, signal }: { readonly from: number | undefined; readonly signal: AbortSignal },
): Promise<void> => {
  const start = await addNewHooks(context, from)
  const signals = { stopping: signal, abort: signal }
  await Promise.all(placedHooks(context).map((placed) => deliverTo(context, placed, { from: start, ...signals })))
}

/** Hooks that are new start after this number; those that are no longer configured are forgotten. */
const addNewHooks = async ({ isolation: { store, host, settings } }: HookContext, from?: number): Promise<number> => {
  const start = from ?? (await store.events.latest())
  const keys = settings.hooks.map(hookKey)
  await store.hooks.keepOnly(host, keys)
  for (const key of keys) await store.hooks.ensure(host, key, start)
  return start
}

const placedHooks = ({ isolation: { settings } }: HookContext): PlacedHook[] =>
  settings.hooks.map((hook: HookSettings, at) => ({ hook, at }))

/** Runs one delivery at a time, again whenever it was kicked meanwhile, and when the next attempt is due. */
const createLane = (
  deliver: () => Promise<Delivered>,
  { stopping, onError }: { readonly stopping: AbortSignal; readonly onError: (error: unknown) => void },
) => {
  let isWanted = false
  let running: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  const run = async (): Promise<void> => {
    let pause = IDLE_MS
    do {
      isWanted = false
      try {
        const delivered = await deliver()
        pause = delivered.outcome === 'later' ? Math.min(delivered.afterMs, IDLE_MS) : IDLE_MS
      } catch (error) {
        onError(error)
        pause = RETRY_MS
      }
    } while (isWanted && !stopping.aborted)
    running = undefined
    if (!stopping.aborted) timer = setTimeout(kick, pause).unref()
  }
  const kick = (): void => {
    isWanted = true
    clearTimeout(timer)
    if (!stopping.aborted) running ??= run()
  }
  return {
    kick,
    ended: async () => {
      clearTimeout(timer)
      await running
    },
  }
}

import type { Clock } from '../../domain/clock.ts'
import type { TurnEnd } from './outcome.ts'

export type Silence = {
  readonly onActivity: () => void
  /** Pauses the timer while someone else has to answer. */
  pausedFor<T>(work: () => Promise<T>): Promise<T>
  /** Resolves after too long a silence; otherwise never. */
  readonly stalled: Promise<TurnEnd>
  end(): void
}

/** `excused`: a tool is running. One that takes ten minutes isn't a stall. */
export const createSilence = (
  { silenceMs, clock }: { readonly silenceMs: number; readonly clock: Clock },
  isBusy: () => boolean,
): Silence => {
  const { promise, resolve } = Promise.withResolvers<TurnEnd>()
  let lastActivity = clock()
  let paused = 0
  const check = (): void => {
    if (paused > 0 || isBusy()) lastActivity = clock()
    else if (clock() - lastActivity >= silenceMs) resolve({ kind: 'stalled', minutes: silenceMs / 60_000 })
  }
  // Polling is enough; a timer per message would mean thousands.
  const interval = setInterval(check, Math.min(30_000, Math.max(5, silenceMs / 4))).unref()
  const onActivity = (): void => {
    lastActivity = clock()
  }
  return {
    onActivity,
    pausedFor: async (work) => {
      paused += 1
      try {
        return await work()
      } finally {
        paused -= 1
        onActivity()
      }
    },
    stalled: promise,
    end: () => clearInterval(interval),
  }
}

import type { Clock } from '../../domain/clock.ts'
import type { Turn } from './outcome.ts'

export type Silence = {
  readonly heard: () => void
  /** Somebody else is to speak: the time does not count. */
  pausedFor<T>(work: () => Promise<T>): Promise<T>
  /** Settles when it has been silent for too long; else never. */
  readonly stalled: Promise<Turn>
  end(): void
}

/** A tool that takes ten minutes is not a stall: `excused` says whether one is at work. */
export const createSilence = (
  { silenceMs, clock }: { readonly silenceMs: number; readonly clock: Clock },
  excused: () => boolean,
): Silence => {
  const { promise, resolve } = Promise.withResolvers<Turn>()
  let last = clock()
  let paused = 0
  const look = (): void => {
    if (paused > 0 || excused()) last = clock()
    else if (clock() - last >= silenceMs) resolve({ kind: 'stalled', minutes: silenceMs / 60_000 })
  }
  // A timer per message would be thousands; looking a few times within the limit is as good.
  const looking = setInterval(look, Math.min(30_000, Math.max(5, silenceMs / 4))).unref()
  const heard = (): void => {
    last = clock()
  }
  return {
    heard,
    pausedFor: async (work) => {
      paused += 1
      try {
        return await work()
      } finally {
        paused -= 1
        heard()
      }
    },
    stalled: promise,
    end: () => clearInterval(looking),
  }
}

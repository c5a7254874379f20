/** Ends a run that has worked too long. Time spent waiting for others doesn't count. */
export type RunLimit = {
  pausedFor<T>(work: () => Promise<T>): Promise<T>
  end(): void
}

export const createRunLimit = (limitMs: number, onReached: () => void): RunLimit => {
  let left = limitMs
  let since = 0
  let pauses = 0
  let ended = false
  let timer: NodeJS.Timeout | undefined
  const start = (): void => {
    // Not the wall clock: it may be set, and it advances during sleep.
    since = performance.now()
    timer = setTimeout(onReached, left).unref()
  }
  const pause = (): void => {
    clearTimeout(timer)
    left = Math.max(0, left - (performance.now() - since))
  }
  start()
  return {
    pausedFor: async (work) => {
      pauses += 1
      if (pauses === 1) pause()
      try {
        return await work()
      } finally {
        pauses -= 1
        if (pauses === 0 && !ended) start()
      }
    },
    end: () => {
      ended = true
      clearTimeout(timer)
    },
  }
}

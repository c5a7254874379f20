/** Ends a run that has worked for too long. Time in which it waits for somebody else does not count. */
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
    // Not the wall clock: it may be set, and it runs on while the machine sleeps.
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

/** How many conversations are worked on at once, and who is next when all places are taken. */
export type RunSlots = {
  /** Whether a new message may begin. Whoever waits to continue comes first. */
  available(): boolean
  taken(): number
  /** For a new message; the caller has asked whether one is available. */
  take(): RunSlot
}

export type RunSlot = {
  /**
   * Waits for what no work of ours can hurry: a person's answer, another conversation's turn. The place is free for
   * others meanwhile and is taken again, in turn, before this settles.
   */
  whileWaiting<T>(wait: () => Promise<T>, options: WaitOptions): Promise<T>
  isWaiting(): boolean
  /** The work has ended. */
  leave(): void
  /** There was no work after all: nobody is called to take the place. */
  unused(): void
}

/** The same for a run that may have no place, as its work sees it. */
export type WhileWaiting = <T>(wait: () => Promise<T>, onFull?: () => void) => Promise<T>

export type WaitOptions = {
  /** Aborted when the run ends: it needs no place to end. */
  readonly signal: AbortSignal
  /** Called when the wait is over and all places are taken. */
  readonly onFull?: (() => void) | undefined
}

type State = 'working' | 'waiting' | 'returning' | 'gone'

/** `onFree` is called when a place has become available. */
export const createRunSlots = (most: number, onFree: () => void): RunSlots => {
  let taken = 0
  /** Those whose wait is over, in order. */
  const returning: (() => void)[] = []

  /** Passes a place on. Answers false when nobody was waiting to continue. */
  const passOn = (): boolean => {
    const next = returning.shift()
    if (next === undefined) taken -= 1
    else next()
    return next !== undefined
  }
  const free = (): void => {
    if (!passOn()) onFree()
  }

  const take = (): RunSlot => {
    taken += 1
    let state: State = 'working'
    let waits = 0
    let stopReturning: (() => void) | undefined

    const begin = (): void => {
      waits += 1
      if (state === 'working') {
        state = 'waiting'
        free()
      } else if (state === 'returning') {
        // It waits again before it got its place.
        stopReturning?.()
      }
    }

    const comeBack = async ({ signal, onFull }: WaitOptions): Promise<void> => {
      if (taken < most) {
        taken += 1
        state = 'working'
        return
      }
      const { promise, resolve } = Promise.withResolvers<void>()
      const granted = (): void => {
        state = 'working'
        resolve()
      }
      stopReturning = () => {
        returning.splice(returning.indexOf(granted), 1)
        state = 'waiting'
        resolve()
      }
      const onAbort = (): void => {
        if (state === 'returning') stopReturning?.()
      }
      state = 'returning'
      returning.push(granted)
      signal.addEventListener('abort', onAbort, { once: true })
      onFull?.()
      await promise
      signal.removeEventListener('abort', onAbort)
    }

    return {
      whileWaiting: async (wait, options) => {
        begin()
        try {
          return await wait()
        } finally {
          waits -= 1
          // With another question still open it waits on.
          if (waits === 0 && state === 'waiting' && !options.signal.aborted) await comeBack(options)
        }
      },
      isWaiting: () => state === 'waiting',
      leave: () => {
        const before = state
        if (before === 'returning') stopReturning?.()
        state = 'gone'
        if (before === 'working') free()
      },
      unused: () => {
        state = 'gone'
        passOn()
      },
    }
  }

  return { available: () => taken < most && returning.length === 0, taken: () => taken, take }
}

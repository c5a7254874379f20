/** Limits how many conversations run at once, and picks who is next. */
export type RunSlots = {
  /** Whether a new message may start. Runs waiting to resume come first. */
  available(): boolean
  taken(): number
  /** For a new message. Check `available` first. */
  take(): RunSlot
}

export type RunSlot = {
  /**
   * Waits for something we can't speed up: a person's answer, another conversation's turn. Frees the slot meanwhile and
   * takes one again, in turn, before resolving.
   */
  whileWaiting<T>(wait: () => Promise<T>, options: WaitOptions): Promise<T>
  isWaiting(): boolean
  /** The run has ended. */
  leave(): void
  /** There was no message: frees the slot without calling `onFree`. */
  unused(): void
}

/** For a run, which may have no slot. */
export type WhileWaiting = <T>(wait: () => Promise<T>, onFull?: () => void) => Promise<T>

export type WaitOptions = {
  /** Aborted when the run ends: ending needs no slot. */
  readonly signal: AbortSignal
  /** Called if all slots are taken after the wait. */
  readonly onFull?: (() => void) | undefined
}

type State = 'working' | 'waiting' | 'returning' | 'gone'

/** `onFree` is called when a slot becomes free. */
export const createRunSlots = (most: number, onFree: () => void): RunSlots => {
  let taken = 0
  /** Runs waiting to resume, in order. */
  const returning: (() => void)[] = []

  /** Passes a slot on. Returns false if no run was waiting. */
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
        // It waits again before it got its slot.
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
          // Keep waiting while another question is open.
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

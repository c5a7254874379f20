import { AppError } from '../domain/errors.ts'

type Waiter = { readonly go: () => void; readonly fail: (error: AppError) => void }

/**
 * One at a time within this process, in the order of asking. SQLite has one connection here, and a statement of
 * someone else must not slip into an open transaction.
 *
 * Code that uses the outer store inside a transaction waits for itself. It cannot be told from an honest neighbour
 * when it asks, only by the holder never finishing: so when somebody waits and the same holder stays for longer than
 * `patience`, the waiters get an error that says what to look for. A queue that moves is never cut off.
 */
export class Turn {
  readonly #patience: number
  readonly #waiting: Waiter[] = []
  #held = false
  #alarm: NodeJS.Timeout | undefined

  constructor(patience: number) {
    this.#patience = patience
  }

  get inUse(): number {
    return this.#held ? 1 : 0
  }

  async take(): Promise<void> {
    if (!this.#held) {
      this.#held = true
      return
    }
    await new Promise<void>((go, fail) => {
      this.#waiting.push({ go, fail })
      this.#watch()
    })
  }

  give(): void {
    clearTimeout(this.#alarm)
    this.#alarm = undefined
    const next = this.#waiting.shift()
    if (next === undefined) {
      this.#held = false
      return
    }
    if (this.#waiting.length > 0) this.#watch()
    next.go()
  }

  #watch(): void {
    this.#alarm ??= setTimeout(() => {
      this.#alarm = undefined
      for (const { fail } of this.#waiting.splice(0)) fail(stuck(this.#patience))
    }, this.#patience)
  }
}

const stuck = (patience: number): AppError =>
  new AppError(
    'store-failed',
    `a transaction of this process has not ended for ${patience / 1000} s: it waits for something that waits for it`,
    { remedy: 'inside a transaction use the store it was given, never the outer one' },
  )

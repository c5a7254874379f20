import { AppError } from '../domain/errors.ts'

type Waiter = { readonly resolve: () => void; readonly reject: (error: AppError) => void }

/**
 * One at a time within this process, first come, first served. SQLite has one connection here, and other statements
 * must not slip into an open transaction.
 *
 * Code that uses the outer store inside a transaction waits for itself. That shows only in a holder that never
 * finishes: so if the same holder stays longer than `patience`, the waiters get an error that says what to look for. A
 * queue that moves is never interrupted.
 */
export class Mutex {
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

  async acquire(): Promise<void> {
    if (!this.#held) {
      this.#held = true
      return
    }
    await new Promise<void>((resolve, reject) => {
      this.#waiting.push({ resolve, reject })
      this.#watch()
    })
  }

  release(): void {
    clearTimeout(this.#alarm)
    this.#alarm = undefined
    const next = this.#waiting.shift()
    if (next === undefined) {
      this.#held = false
      return
    }
    if (this.#waiting.length > 0) this.#watch()
    next.resolve()
  }

  #watch(): void {
    this.#alarm ??= setTimeout(() => {
      this.#alarm = undefined
      for (const { reject } of this.#waiting.splice(0)) reject(stuck(this.#patience))
    }, this.#patience)
  }
}

const stuck = (patience: number): AppError =>
  new AppError(
    'store-failed',
    `a transaction in this process hasn't finished for ${patience / 1000} s: it is waiting for something that waits for it`,
    { remedy: 'inside a transaction, use the store passed to it, never the outer one' },
  )

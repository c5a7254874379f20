import { type FSWatcher, statSync, watch } from 'node:fs'
import { dirname } from 'node:path'
import { AppError } from '../../domain/errors.ts'

/**
 * Is the database that is open still the file at its path? After `rm` or `mv` SQLite goes on reading and writing a file
 * that nobody can ever open again, without an error.
 */
export class SqliteFile {
  readonly #file: string
  readonly #listeners = new Set<(error: AppError) => void>()
  #database: string | undefined
  #log: string | undefined
  #lost: AppError | undefined
  #watcher: FSWatcher | undefined

  constructor(file: string) {
    this.#file = file
  }

  /** Right after it was opened. */
  opened(): void {
    this.#database = identity(this.#file)
  }

  /** Throws once it is another file, or none. Two `stat`: 13 µs together on a busy core. */
  check(): void {
    if (this.#lost !== undefined) throw this.#lost
    if (this.#database === undefined) return
    const log = identity(`${this.#file}-wal`)
    // It is there from the first statement to the last close, and holds what was committed of late.
    this.#log ??= log
    if (identity(this.#file) === this.#database && log === this.#log) return
    this.#lost = lost(this.#file)
    for (const listener of this.#listeners) listener(this.#lost)
    throw this.#lost
  }

  /** Told by the kernel, so nothing polls; where it cannot tell, the next statement notices. */
  onLost(listener: (error: AppError) => void): () => void {
    this.#listeners.add(listener)
    if (this.#lost === undefined) this.#watch()
    else listener(this.#lost)
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) this.close()
    }
  }

  close(): void {
    this.#watcher?.close()
    this.#watcher = undefined
  }

  #watch(): void {
    if (this.#watcher !== undefined) return
    const look = (): void => {
      try {
        this.check()
      } catch {
        // Its listeners were told.
      }
    }
    try {
      // `rename` is what appears, goes or is replaced; every write to the database is a `change`.
      this.#watcher = watch(dirname(this.#file), { persistent: false }, (event) => {
        if (event === 'rename') look()
      })
      this.#watcher.on('error', () => this.close())
    } catch {
      this.#watcher = undefined
    }
  }
}

const identity = (path: string): string | undefined => {
  try {
    const { dev, ino } = statSync(path, { bigint: true })
    return `${dev}:${ino}`
  } catch {
    return undefined
  }
}

const lost = (file: string): AppError =>
  new AppError('store-lost', `the database ${file} was deleted or replaced while it was in use`, {
    remedy: "put the file back, or restart with a new one; changes since then can't be recovered",
  })

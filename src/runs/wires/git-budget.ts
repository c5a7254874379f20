import { setImmediate as nextTurn } from 'node:timers/promises'
import { AppError } from '../../domain/errors.ts'

/**
 * Limits one check of git's files. An agent decides their number and size; the server's thread reads them, and the
 * findings are kept in memory.
 */
export type Budget = {
  readonly bytesLeft: () => number
  /** Throws if fewer are left. */
  readonly takeBytes: (bytes: number) => void
  /** Files, directory entries and settings. Throws if there are too many. */
  readonly takeItems: (items: number) => void
  /** Yields to other work if it has waited long enough. */
  readonly giveWay: () => Promise<void>
}

const MOST_BYTES = 20_000_000
/** A repository with 10,000 branches that track a remote has 20,000 settings. */
const MOST_ITEMS = 30_000
const MOST_MS_AT_ONCE = 10

export const createBudget = (): Budget => {
  let bytes = MOST_BYTES
  let items = MOST_ITEMS
  let since = performance.now()
  return {
    bytesLeft: () => bytes,
    takeBytes: (taken) => {
      bytes -= taken
      if (bytes < 0) throw incomplete('they are too large')
    },
    takeItems: (taken) => {
      items -= taken
      if (items < 0) throw incomplete('there are too many settings and files')
    },
    giveWay: async () => {
      if (performance.now() - since < MOST_MS_AT_ONCE) return
      await nextTurn()
      since = performance.now()
    },
  }
}

const incomplete = (why: string): AppError =>
  new AppError('unsupported', why, { remedy: "check git's configuration and hooks yourself" })

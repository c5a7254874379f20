import { toAppError } from '../domain/errors.ts'
import type { JournalEntry } from '../store/store.ts'
import type { IsolationContext } from './context.ts'

/**
 * Settles an operation that failed in this process. If that fails too, marks the entry as abandoned and returns
 * undefined: its holder is alive, so recovery would otherwise leave it alone until this process ends.
 */
export const undoOrAbandon = async <T>(
  context: Pick<IsolationContext, 'store' | 'log'>,
  entryId: string,
  settle: () => Promise<T>,
): Promise<T | undefined> => {
  try {
    const answer = await settle()
    if (isLeft(answer)) await context.store.journal.advance(entryId, { data: { abandoned: true } })
    return answer
  } catch (error) {
    context.log.error('an operation could be neither finished nor undone', {
      entryId,
      error: toAppError(error).message,
    })
    await context.store.journal.advance(entryId, { data: { abandoned: true } }).catch(() => unmarked.add(entryId))
    return undefined
  }
}

const isLeft = (answer: unknown): boolean =>
  typeof answer === 'object' && answer !== null && 'outcome' in answer && answer.outcome === 'left'

/** Abandoned in this process, but the database couldn't be written, perhaps on a full disk. */
const unmarked = new Set<string>()

export const isAbandoned = ({ id, data }: JournalEntry): boolean => data['abandoned'] === true || unmarked.has(id)

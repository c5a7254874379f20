import { toAppError } from '../domain/errors.ts'
import type { JournalEntry } from '../store/store.ts'
import type { IsolationContext } from './context.ts'

/**
 * Settles an operation that failed in this very process. If that fails too, the entry says that nobody works on it any
 * more: its holder is alive, and without this it would be left to it until the process ends. Undefined: that failed.
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
    await context.store.journal.advance(entryId, { data: { abandoned: true } }).catch(() => undefined)
    return undefined
  }
}

const isLeft = (answer: unknown): boolean =>
  typeof answer === 'object' && answer !== null && 'outcome' in answer && answer.outcome === 'left'

export const isAbandoned = ({ data }: JournalEntry): boolean => data['abandoned'] === true

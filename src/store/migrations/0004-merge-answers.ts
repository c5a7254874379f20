import type { Transaction } from 'kysely'
import type { Tables } from '../tables.ts'

/**
 * Never edited once landed. Merge proofs became stricter: a squash counts only where its lines are where the branch has
 * them. The answers kept so far may rest on the old rule, and all of them can be worked out again.
 */
export const up = async (transaction: Transaction<Tables>): Promise<void> => {
  await transaction.deleteFrom('merge_answers').execute()
}

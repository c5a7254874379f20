import { sql, type Transaction } from 'kysely'
import type { Tables } from '../tables.ts'

/** Never edited once landed. Filled in the next time the repository is seen. */
export const up = async (transaction: Transaction<Tables>): Promise<void> => {
  await sql.raw('alter table codebases add column repo_inode text').execute(transaction)
}

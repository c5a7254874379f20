import type { Kysely } from 'kysely'
import { AppError } from '../../domain/errors.ts'
import type { Tables } from '../tables.ts'

/**
 * The next number, or the first of so many in a row; its row stays locked until the transaction ends, so numbers have no
 * duplicates.
 */
export const takeNumber = async (db: Kysely<Tables>, name: 'items' | 'landings', count = 1): Promise<number> => {
  const row = await db
    .updateTable('counters')
    .set((eb) => ({ next: eb('next', '+', count) }))
    .where('name', '=', name)
    .returning('next')
    .executeTakeFirst()
  if (row === undefined) throw new AppError('store-failed', `the counter of ${name} is missing`)
  return row.next - count
}

/** For a number from before the database was lost. Its row stays locked until the transaction ends. */
export const reserveNumber = async (db: Kysely<Tables>, name: 'items', taken: number): Promise<void> => {
  await db
    .updateTable('counters')
    .set((eb) => ({
      next: eb
        .case()
        .when('next', '<=', taken)
        .then(taken + 1)
        .else(eb.ref('next'))
        .end(),
    }))
    .where('name', '=', name)
    .execute()
}

/** Until the transaction ends, nobody else takes one, nor decides about what has them. */
export const lockNumbers = async (db: Kysely<Tables>, name: 'items'): Promise<void> => {
  await db
    .updateTable('counters')
    .set((eb) => ({ next: eb.ref('next') }))
    .where('name', '=', name)
    .execute()
}

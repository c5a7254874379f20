import type { Kysely } from 'kysely'
import { AppError } from '../../domain/errors.ts'
import type { Tables } from '../tables.ts'

/**
 * The next number, or the first of `count` consecutive ones. The counter stays locked until the transaction ends, so no
 * number is given out twice.
 */
export const takeNumber = async (
  db: Kysely<Tables>,
  name: 'items' | 'landings' | 'events',
  count = 1,
): Promise<number> => {
  const row = await db
    .updateTable('counters')
    .set((eb) => ({ next: eb('next', '+', count) }))
    .where('name', '=', name)
    .returning('next')
    .executeTakeFirst()
  if (row === undefined) throw new AppError('store-failed', `the counter of ${name} is missing`)
  return row.next - count
}

/** Marks a number from before the database was lost as taken. The counter stays locked until the transaction ends. */
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

/** Locks the counter until the transaction ends, so that no other transaction adds items or edits dependencies. */
export const lockNumbers = async (db: Kysely<Tables>, name: 'items'): Promise<void> => {
  await db
    .updateTable('counters')
    .set((eb) => ({ next: eb.ref('next') }))
    .where('name', '=', name)
    .execute()
}

/** SQLite takes 32,766 variables in a statement, PostgreSQL 65,535. */
export const IDS_PER_QUERY = 10_000

export function* inChunks<T>(all: readonly T[], size: number): Generator<readonly T[]> {
  for (let from = 0; from < all.length; from += size) yield all.slice(from, from + size)
}

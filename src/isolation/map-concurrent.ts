/** So many at a time, each lane taking the next as soon as it is free. Results keep the order of the items. */
export const mapConcurrent = async <T, R>(
  lanes: number,
  items: readonly T[],
  work: (item: T) => Promise<R>,
): Promise<R[]> => {
  const results: R[] = []
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < items.length) {
      const index = next
      next += 1
      results[index] = await work(items[index] as T)
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return results
}

/** Git programs fill a core each, and more of them at once only wait for one another. */
export const mapInPairs = <T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> =>
  mapConcurrent(2, items, work)

/** Runs `lanes` at a time; each takes the next item as soon as it is free. Results keep the items' order. */
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

/** Each git process fills a core; more at once would only wait for each other. */
export const mapInPairs = <T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> =>
  mapConcurrent(2, items, work)

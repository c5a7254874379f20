/** Two at a time: git programs fill a core each, and more of them at once only wait for one another. Order is kept. */
export const inPairs = async <T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> => {
  const results: R[] = []
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < items.length) {
      const index = next
      next += 1
      results[index] = await work(items[index] as T)
    }
  }
  await Promise.all(Array.from({ length: Number(process.env['LANES'] ?? 2) }, worker))
  return results
}

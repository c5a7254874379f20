/**
 * Shares one run between concurrent callers. A run that has already started may have missed what a caller just did, so
 * callers that arrive meanwhile share the next run, which starts when the current one ends.
 */
export type Share = <T>(key: string, run: () => Promise<T>) => Promise<T>

export const createShare = (): Share => {
  const shared = new Map<string, { readonly current: Promise<unknown>; next: Promise<unknown> | undefined }>()
  const begin = <T>(key: string, run: () => Promise<T>): Promise<T> => {
    const current = run()
    const entry = { current, next: undefined }
    shared.set(key, entry)
    const forget = (): void => {
      if (shared.get(key) === entry) shared.delete(key)
    }
    current.then(forget, forget)
    return current
  }
  return <T>(key: string, run: () => Promise<T>): Promise<T> => {
    const entry = shared.get(key)
    if (entry === undefined) return begin(key, run)
    const after = (): Promise<T> => begin(key, run)
    entry.next ??= entry.current.then(after, after)
    return entry.next as Promise<T>
  }
}

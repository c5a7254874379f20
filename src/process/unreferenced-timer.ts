/** Calls back once, without keeping the process alive. Returns a function that cancels it. */
export const unreferencedTimer = (callback: () => void, afterMs: number): (() => void) => {
  const timer = setTimeout(callback, afterMs).unref()
  return () => clearTimeout(timer)
}

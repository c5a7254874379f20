import type { AppError } from '../domain/errors.ts'
import type { GitRequest } from './request.ts'
import type { Look } from './look.ts'

/** A status of 30,000 files takes 0.1 s: what has taken this long may be waiting for something. */
export const defaultPatienceMs = 1_000

/**
 * Runs git and looks again while it is slow: what it waits for may have come after the look before its start, or lie in
 * the tree, which is too large to be looked at every time. Git is then ended, and the error names the file. Git that
 * answers in time costs nothing more.
 */
export const watchedWhileSlow = async <T>(
  request: GitRequest,
  { look, patienceMs }: { readonly look: Look; readonly patienceMs: number },
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> => {
  const stuck = new AbortController()
  let found: AppError | undefined
  let answered = false
  let timer: NodeJS.Timeout | undefined
  const lookAfter = (ms: number): void => {
    timer = setTimeout(() => void lookNow(ms), ms)
  }
  const lookNow = async (waited: number): Promise<void> => {
    found = await look.whileSlow(request, () => answered)
    if (answered) return
    if (found !== undefined) stuck.abort()
    // A large tree on a cold disk is not to be walked every second.
    else lookAfter(waited * 2)
  }
  lookAfter(patienceMs)
  const { signal } = request
  try {
    return await run(signal ? AbortSignal.any([signal, stuck.signal]) : stuck.signal)
  } catch (cause) {
    throw stuck.signal.aborted && found !== undefined && signal?.aborted !== true ? found : cause
  } finally {
    answered = true
    clearTimeout(timer)
  }
}

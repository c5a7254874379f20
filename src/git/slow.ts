import type { AppError } from '../domain/errors.ts'
import type { GitRequest } from './request.ts'
import type { Look } from './look.ts'

/** A status of 30,000 files takes 0.1 s: after this long, git may be blocked. */
export const defaultPatienceMs = 1_000

/**
 * Runs git and checks for blocking files while it's slow: one may have appeared after the check before the start, or be
 * in the tree, which is too large to check every time. Stops git then, and the error names the file. Costs nothing when
 * git is fast.
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
    // Don't walk a large tree on a cold disk every second.
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

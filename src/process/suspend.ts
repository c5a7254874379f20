/** Time for the signal to stop us. In a process group without job control it never does. */
const STOP_MS = 300

/**
 * Suspends this process's group, as Ctrl-Z on a terminal does, which sends no signal in raw mode. Resolves when it
 * continues.
 */
export const suspendGroup = (): Promise<void> =>
  new Promise((resolve) => {
    const resumed = (): void => {
      clearTimeout(timer)
      process.off('SIGCONT', resumed)
      // Meanwhile, the terminal told only the shell about its size.
      process.kill(process.pid, 'SIGWINCH')
      resolve()
    }
    process.once('SIGCONT', resumed)
    const timer = setTimeout(resumed, STOP_MS)
    process.kill(0, 'SIGTSTP')
  })

/** Why a run was ended from outside. */
export type Interruption = 'stop' | 'time-limit' | 'shutdown'

/** `/stop` and the time limit answer the message; a shutdown puts it back, to be run again at the next start. */
export const interruptionOf = (signal: AbortSignal): Interruption | undefined => {
  if (!signal.aborted) return undefined
  return signal.reason === 'stop' || signal.reason === 'time-limit' ? signal.reason : 'shutdown'
}

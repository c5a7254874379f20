/** Why a run was cancelled. */
export type Interruption = 'stop' | 'time-limit' | 'shutdown'

/** `/stop` and the time limit answer the message; a shutdown requeues it for the next start. */
export const interruptionOf = (signal: AbortSignal): Interruption | undefined => {
  if (!signal.aborted) return undefined
  return signal.reason === 'stop' || signal.reason === 'time-limit' ? signal.reason : 'shutdown'
}

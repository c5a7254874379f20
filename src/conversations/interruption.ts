/** Why a run was ended from outside. */
export type Interruption = 'stop' | 'shutdown'

/** `/stop` answers the message; a shutdown puts it back, to be run again at the next start. */
export const interruptionOf = (signal: AbortSignal): Interruption | undefined => {
  if (!signal.aborted) return undefined
  return signal.reason === 'stop' ? 'stop' : 'shutdown'
}

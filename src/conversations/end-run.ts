import type { Clock } from '../domain/clock.ts'
import { toAppError } from '../domain/errors.ts'
import { killTree } from '../process/kill.ts'
import type { Logger } from '../process/log.ts'
import { processesWithVariable } from '../process/marked.ts'
import type { InboxMessage } from '../store/store.ts'

/** The variable that names the message in the environment of its agent, and of whatever that starts. */
export const messageVariable = 'COPPICE_MESSAGE'

/** Which run of the message it is, likewise. */
const attemptVariable = 'COPPICE_ATTEMPT'

const GRACE_MS = 2_000

/**
 * Ends what an interrupted run left: an agent outlives the server that was killed, and must be dead before the message
 * is run again. Its own process by the recorded identity; children that lost their parent by the variable they inherited.
 */
export const createEndRun =
  ({ clock, log }: { readonly clock: Clock; readonly log: Logger }) =>
  async ({ id, child, attempts }: Pick<InboxMessage, 'id' | 'child' | 'attempts'>): Promise<boolean> => {
    try {
      if (child !== undefined) {
        const killed = await killTree(child, { graceMs: GRACE_MS, clock })
        if (killed.outcome === 'survivors') return false
      }
      for (const orphan of await processesWithVariable(messageVariable, id, isOfRun(attempts))) {
        const killed = await killTree(orphan, { graceMs: GRACE_MS, clock })
        if (killed.outcome === 'survivors') return false
      }
      return true
    } catch (error) {
      log.warn('an interrupted run could not be ended', { id, error: toAppError(error).message })
      return false
    }
  }

/**
 * Not of a later one: another process that recovers at the same time may have put the message back and begun it again
 * since we read it, and that run is alive.
 */
const isOfRun =
  (attempts: number) =>
  (variables: readonly string[]): boolean => {
    const given = variables.find((one) => one.startsWith(`${attemptVariable}=`))
    return given === undefined || !(Number(given.slice(attemptVariable.length + 1)) > attempts)
  }

import type { Workplace } from '../commands/command.ts'
import { toAppError } from '../domain/errors.ts'
import { isInsideRun } from '../process/run-processes.ts'
import { runVariable } from '../process/run-mark.ts'
import { runningServer } from '../server/record.ts'

/** Commands that agents run, and the server, which delivers by itself. */
const ofOthers = /^(?:internal|prime|done|serve)\b/

/** Commands that also retry what failed earlier: cron runs them. */
const retries = /^fleet patrol$/

/** One attempt for each event. `from`: where a new hook starts. */
export type DeliverHooks = (
  workplace: Workplace,
  options: { readonly from: number | undefined; readonly signal: AbortSignal },
) => Promise<void>

type Around = {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly signal: AbortSignal
  readonly deliver: DeliverHooks
}

export type Ended = {
  readonly command: string
  /** The number of the first event that the command recorded. */
  readonly first: number | undefined
}

/**
 * Without a server, whichever command recorded events delivers them to the hooks before it exits: but only a person's
 * command, or one that cron runs. What happens in an agent's session waits for the next one.
 */
export const deliverHooks = async (
  { env, signal, deliver }: Around,
  workplace: Workplace,
  { command, first }: Ended,
): Promise<void> => {
  const { settings, home, log } = workplace.context
  if (settings.hooks.length === 0 || (first === undefined && !retries.test(command))) return
  const isAgent = env['COPPICE_SPAWN'] !== undefined || env[runVariable] !== undefined || isInsideRun()
  if (isAgent || ofOthers.test(command) || runningServer(home) !== undefined) return
  try {
    await deliver(workplace, { from: first === undefined ? undefined : first - 1, signal })
  } catch (error) {
    // The next command, or the server, delivers it.
    log.warn('events could not be delivered to hooks', { error: toAppError(error).message })
  }
}

import type { ProcessIdentity } from '../domain/process-identity.ts'
import { runVariable } from './run-mark.ts'
import { type DetachedProgram, spawnDetached } from './spawn.ts'

/**
 * Starts background work that belongs to no run, even if we were started in one: what ends that run must survive its
 * end. See `run-mark.ts` for the marks that children inherit.
 */
export const spawnUnmarked = ({ command, args, env, ...program }: DetachedProgram): Promise<ProcessIdentity> => {
  const { [runVariable]: _mark, ...own } = env
  return spawnDetached({ ...program, env: own, command: '/bin/sh', args: ['-c', UNMARK, 'sh', command, ...args] })
}

/** The mark is only a soft limit, and the hard one is unlimited unless somebody set it. */
const UNMARK = '{ ulimit -S -w "$(ulimit -H -w)" || ulimit -S -x "$(ulimit -H -x)"; } 2>/dev/null; exec "$@"'

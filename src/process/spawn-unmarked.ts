import type { ProcessIdentity } from '../domain/process-identity.ts'
import { cgroupAroundRun } from './cgroup.ts'
import { runVariable } from './run-mark.ts'
import { type DetachedProgram, spawnDetached } from './spawn.ts'

/**
 * Starts a background process outside of any run, even if this process belongs to one: the process that ends a run must
 * survive its end. See `run-mark.ts` for the marks that children inherit.
 */
export const spawnUnmarked = ({ command, args, env, ...program }: DetachedProgram): Promise<ProcessIdentity> => {
  const { [runVariable]: _mark, ...own } = env
  return spawnDetached({ ...program, env: own, ...unmarked(command, args) })
}

/** The same program, without the mark of the run that this process belongs to. The caller provides its environment. */
export const unmarked = (
  command: string,
  args: readonly string[],
): { readonly command: string; readonly args: readonly string[] } => ({
  command: '/bin/sh',
  args: ['-c', UNMARK, 'sh', cgroupAroundRun() ?? '', command, ...args],
})

/** The mark is only a soft limit, and the hard one is unlimited unless somebody set it. */
const UNMARK =
  '{ [ -z "$1" ] || echo 0 > "$1/cgroup.procs"; ulimit -S -w "$(ulimit -H -w)" || ulimit -S -x "$(ulimit -H -x)"; } 2>/dev/null; shift; exec "$@"'

import { createHash } from 'node:crypto'

/**
 * Ties every process of a run, or of a repository script, to it. An agent's child that runs `env -i setsid` and forks
 * twice loses its environment, session and parent, but keeps its inherited limits and its cgroup.
 */
export type RunMark = {
  /** Unique per run on this machine. */
  readonly id: string
  /** The run's own cgroup, if we can create one. */
  readonly cgroup: string | undefined
}

export const runMarkId = (home: string, message: string, attempt: number): string =>
  `${prefixOf(home)}.${message}.${attempt}`

/**
 * For the repository's scripts in a worktree: found by the worktree's id, without a record. No cgroup, which would need
 * one: a person approved the setup code, so it won't try to lose its mark.
 */
export const scriptMark = (home: string, environment: string, kind: 'setup' | 'teardown'): RunMark => ({
  id: `${prefixOf(home)}.${kind}.${environment}`,
  cgroup: undefined,
})

/**
 * For one session of a fleet's agent. Without a cgroup: the process that ends the session may have been started in it
 * (`coppice done`) and would kill itself.
 */
export const agentMark = (home: string, spawn: string): RunMark => ({
  id: `${prefixOf(home)}.agent.${spawn}`,
  cgroup: undefined,
})

/** For what runs in a scratch tree, found by its id after the process that made it has died. */
export const scratchMark = (home: string, id: string): RunMark => ({
  id: `${prefixOf(home)}.scratch.${id}`,
  cgroup: undefined,
})

/** For a hook's command: a time-out, or a crash of the process that started it, must leave nothing of it running. */
export const hookMark = (home: string, key: string): RunMark => ({
  id: `${prefixOf(home)}.hook.${key}`,
  cgroup: undefined,
})

const prefixOf = (home: string): string => createHash('sha256').update(home).digest('hex').slice(0, 12)

/** In the environment of the agent and its children. */
export const runVariable = 'COPPICE_RUN'

/** Nobody sets such a limit for another reason. */
export const LEAST_LOCK_LIMIT = 2 ** 40

/**
 * The mark as a number, used as the soft limit on file locks. The kernel has ignored that limit since 2.4.25, children
 * inherit it, and only a deliberate reset removes it.
 */
export const lockLimitOf = (id: string): string =>
  String(LEAST_LOCK_LIMIT + createHash('sha256').update(id).digest().readUIntBE(0, 5))

/**
 * Shell code that marks the shell itself. Arguments: the cgroup (or empty) and the limit. File locks are `-w` in dash
 * and BusyBox, `-x` in bash. Failures aren't fatal: each mark works alone.
 */
export const MARK_SCRIPT =
  '{ [ -z "$1" ] || echo 0 > "$1/cgroup.procs"; ulimit -S -w "$2" || ulimit -S -x "$2"; } 2>/dev/null; shift 2; '

export const markArguments = ({ id, cgroup }: RunMark): readonly [string, string] => [cgroup ?? '', lockLimitOf(id)]

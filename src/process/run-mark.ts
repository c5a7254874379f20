import { createHash } from 'node:crypto'

/**
 * What ties every process of a run, or of a script of the repository, to it. An agent's child that runs `env -i setsid` and forks twice has lost its
 * environment, session and parent; it still has the limits it inherited, and it is still in its cgroup.
 */
export type RunMark = {
  /** Different for every run on this machine. */
  readonly id: string
  /** A cgroup of this run alone, where we may make one. */
  readonly cgroup: string | undefined
}

export const runMarkId = (home: string, message: string, attempt: number): string =>
  `${prefixOf(home)}.${message}.${attempt}`

/**
 * For the repository's scripts of a worktree: by its id they are found again without a record. No cgroup, which would
 * need one: setup is code that a person approved, so nobody expects it to shed its mark.
 */
export const scriptMark = (home: string, environment: string, kind: 'setup' | 'teardown'): RunMark => ({
  id: `${prefixOf(home)}.${kind}.${environment}`,
  cgroup: undefined,
})

const prefixOf = (home: string): string => createHash('sha256').update(home).digest('hex').slice(0, 12)

/** In the environment of the agent and of whatever it starts. */
export const runVariable = 'COPPICE_RUN'

/**
 * The same as a number: the soft limit on file locks. The kernel has ignored that limit since 2.4.25, every child
 * inherits it, and a program has to reset it on purpose to lose it.
 */
export const lockLimitOf = (id: string): string =>
  String(2 ** 40 + createHash('sha256').update(id).digest().readUIntBE(0, 5))

/**
 * Shell that marks the shell itself: arguments are the cgroup (or nothing) and the limit. `-w` is dash's and BusyBox's
 * letter for file locks, `-x` bash's. What fails is not fatal: each mark stands alone.
 */
export const MARK_SCRIPT =
  '{ [ -z "$1" ] || echo 0 > "$1/cgroup.procs"; ulimit -S -w "$2" || ulimit -S -x "$2"; } 2>/dev/null; shift 2; '

export const markArguments = ({ id, cgroup }: RunMark): readonly [string, string] => [cgroup ?? '', lockLimitOf(id)]

import type { ProviderName } from '../provider-name.ts'
import type { DoneMode } from './formula.ts'

/** A pool's settings. Every key has a row in `domain/config/fleet.ts`. */
export type PoolSettings = {
  readonly name: string
  /** Undefined: the configured default. */
  readonly agent: string | undefined
  /** A command line instead of an agent, run by `sh -c` in the worktree. */
  readonly command: string | undefined
  /** By name; undefined: all. */
  readonly codebases: readonly string[] | undefined
  readonly min: number
  readonly max: number
  readonly pull: boolean
  /** A formula: a built-in one, one of the repository's, or `auto`: pr, else land, else push, whichever is possible first. */
  readonly done: string
  readonly isolation: ProviderName | undefined
  readonly names: readonly string[]
  readonly prompt: string | undefined
  readonly wake: WakeMode
  readonly dependsOn: readonly string[]
  readonly drainTimeoutMs: number
}

/** Whether a restarted agent resumes its program's session or starts a fresh one. */
export const wakeModes = ['resume', 'fresh'] as const
export type WakeMode = (typeof wakeModes)[number]

/** The order in which `done: auto` tries the modes. */
export const autoModes: readonly DoneMode[] = ['pr', 'land', 'push']

/** The order in which pools stop: dependents first. Undefined if the dependencies have a cycle. */
export const stopOrder = <Pool extends Pick<PoolSettings, 'name' | 'dependsOn'>>(
  pools: readonly Pool[],
): readonly Pool[] | undefined => {
  const left = new Map(pools.map((pool) => [pool.name, pool]))
  const order: Pool[] = []
  while (left.size > 0) {
    // `dependsOn` names what must stop later.
    const next = [...left.values()].filter(
      ({ name }) => ![...left.values()].some((other) => other.name !== name && other.dependsOn.includes(name)),
    )
    if (next.length === 0) return undefined
    for (const pool of next) {
      left.delete(pool.name)
      order.push(pool)
    }
  }
  return order
}

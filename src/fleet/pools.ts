import type { Codebase } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import type { FleetAgent } from '../domain/fleet/agent.ts'
import type { PoolSettings } from '../domain/fleet/pool.ts'
import type { FleetContext } from './context.ts'

type Settings = Pick<FleetContext['isolation'], 'settings'>

export const poolNamed = ({ settings: { pools } }: Settings, name: string): PoolSettings => {
  const pool = pools.find((one) => one.name === name)
  if (pool !== undefined) return pool
  throw new AppError('not-found', `unknown pool ${JSON.stringify(name.slice(0, 60))}`, {
    remedy: `choose one of: ${pools.map((one) => one.name).join(', ')}`,
  })
}

export const worksFor = ({ codebases }: PoolSettings, { name }: Pick<Codebase, 'name'>): boolean =>
  codebases === undefined || codebases.includes(name)

/** The default pool for a codebase: the first that works for it. */
export const poolFor = ({ settings: { pools } }: Settings, codebase: Pick<Codebase, 'name'>): PoolSettings => {
  const pool = pools.find((one) => worksFor(one, codebase))
  if (pool !== undefined) return pool
  throw new AppError('not-found', `no pool works for ${codebase.name}`, {
    remedy: 'add it to the `codebases` of a pool in config.yaml',
  })
}

/** The pool's workers, which count towards its `max`. */
export const membersOf = (pool: Pick<PoolSettings, 'name'>, agents: readonly FleetAgent[]): readonly FleetAgent[] =>
  agents.filter(({ kind, pool: its }) => kind === 'worker' && its === pool.name)

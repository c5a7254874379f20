/*
 * What cleanup would remove now. In: environments and whether they are merged. Out: for each why it would go, or what
 * holds it. The gates decide, as in a removal; nothing is changed and no lock is taken.
 */
import type { Codebase } from '../domain/environment.ts'
import type { EnvironmentId } from '../domain/names.ts'
import { type GateAnswer, cannotTell } from '../domain/removal/gates.ts'
import { isStale } from '../domain/stale.ts'
import { isAppError, toAppError } from '../domain/errors.ts'
import { processesInside, type ProcessesInside } from '../process/inside/processes-inside.ts'
import { baseAndConfig } from './codebases/base-and-config.ts'
import type { IsolationContext } from './context.ts'
import { mapConcurrent } from './map-concurrent.ts'
import type { MergeStatus } from './merge-proof/merge-status.ts'
import { providerOf } from './provider-of.ts'

type Judged = Pick<MergeStatus, 'environment' | 'merged' | 'lastActivityAt'>

export type Removable =
  /** Neither merged nor stale, or not for cleanup to remove. */
  | { readonly kind: 'active' }
  | { readonly kind: 'merged' | 'stale' }
  /** It is merged or stale, and a gate refuses. `reasons`: the first that were found. */
  | { readonly kind: 'held'; readonly as: 'merged' | 'stale'; readonly reasons: readonly GateAnswer[] }

export type RemovableCounts = { readonly [Kind in Removable['kind']]: number }

/**
 * Why cleanup would try to remove it. Skips adopted ones: Coppice never deletes them, and to stop tracking one unasked
 * would only confuse.
 */
export const cleanupTrigger = (
  { clock, settings }: Pick<IsolationContext, 'clock' | 'settings'>,
  { environment, merged, lastActivityAt }: Judged,
  only?: 'merged' | 'stale',
): 'merged' | 'stale' | undefined => {
  if (!environment.owned || environment.status !== 'active') return undefined
  if (merged.value === 'yes' && only !== 'stale') return 'merged'
  return only !== 'merged' && isStale(lastActivityAt, settings.staleDays, clock()) ? 'stale' : undefined
}

export type RemovableOptions = {
  /** The conversation that asks doesn't hold its own environment. */
  readonly askedBy?: string | undefined
  /** Known to be held, for these reasons: not asked again. */
  readonly refused?: ReadonlyMap<EnvironmentId, readonly GateAnswer[]>
  readonly signal?: AbortSignal | undefined
}

/**
 * Git is asked only about the files of those that nothing else holds, and about no environment that is neither merged
 * nor stale. One walk of the process table serves all.
 */
export const findRemovable = async (
  context: IsolationContext,
  codebase: Codebase,
  all: readonly Judged[],
  { askedBy, refused, signal }: RemovableOptions = {},
): Promise<ReadonlyMap<EnvironmentId, Removable>> => {
  const found = new Map<EnvironmentId, Removable>(all.map(({ environment }) => [environment.id, { kind: 'active' }]))
  const candidates = all.flatMap((one) => {
    const as = cleanupTrigger(context, one)
    return as === undefined ? [] : [{ ...one, as }]
  })
  const open = candidates.filter(({ environment, as }) => {
    const reasons = refused?.get(environment.id)
    if (reasons !== undefined) found.set(environment.id, { kind: 'held', as, reasons })
    return reasons === undefined
  })
  if (open.length === 0) return found
  const read = await baseAndConfig(context, codebase, undefined, { signal }).catch((error: unknown) => {
    if (isAppError(error, 'cancelled')) throw error
    return unknown(error)
  })
  // Without a base, cleanup removes nothing.
  if (Array.isArray(read)) {
    for (const { environment, as } of open) found.set(environment.id, { kind: 'held', as, reasons: read })
    return found
  }
  const { config } = read
  let scan: Promise<ProcessesInside> | undefined
  const paths = open.map(({ environment }) => environment.path)
  const inside = (): Promise<ProcessesInside> => (scan ??= processesInside(paths, { except: context.git.running }))
  await mapConcurrent(lanes, open, async ({ environment, merged, as }) => {
    const reasons = await reasonsAgainst(async () => {
      const provider = await providerOf(context, environment)
      const options = { trigger: as, ...(askedBy !== undefined && { askedBy }), ...(signal && { signal }) }
      return provider.whyNotRemovable(context, codebase, environment, { options, config, merged, inside })
    })
    if (signal?.aborted === true) return
    found.set(environment.id, reasons.length === 0 ? { kind: as } : { kind: 'held', as, reasons })
  })
  return found
}

/** As in a list: each call is short, and a third one fills the gaps. */
const lanes = 3

const reasonsAgainst = async (ask: () => Promise<readonly GateAnswer[]>): Promise<readonly GateAnswer[]> => {
  try {
    return await ask()
  } catch (error) {
    return unknown(error)
  }
}

const unknown = (error: unknown): GateAnswer[] => [
  cannotTell('ours', { kind: 'unknown', why: toAppError(error).message }),
]

export const countRemovable = (found: Iterable<Removable>): RemovableCounts => {
  const counts = { active: 0, merged: 0, stale: 0, held: 0 }
  for (const { kind } of found) counts[kind] += 1
  return counts
}

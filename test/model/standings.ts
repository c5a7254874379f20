import type { GateName } from '../../src/domain/removal/gates.ts'
import { isDirty, isOnMain, isUnreachable } from './questions.ts'
import type { Real } from './real.ts'
import { type MergedOracle, type Model, mergedOf, refusingGates } from './state.ts'

/** How an environment stands before an operation: what is merged, and which gates would have to refuse. */
export type Standing = {
  readonly merged: MergedOracle
  readonly command: readonly Set<GateName>[]
  readonly forced: readonly Set<GateName>[]
  /** Close events, sweeps, room. */
  readonly automatic: readonly Set<GateName>[]
}

export const standingsOf = (model: Model, real: Real): Map<string, Standing> =>
  new Map(
    [...model.environments].map(([id, one]) => {
      const merged = mergedOf(model, one, isOnMain(real))
      const facts = { merged, dirty: isDirty(real, one), unreachable: isUnreachable(real, one) }
      return [
        id,
        {
          merged,
          command: refusingGates(model, one, { ...facts, trigger: 'command', force: false }),
          forced: refusingGates(model, one, { ...facts, trigger: 'command', force: true }),
          automatic: refusingGates(model, one, { ...facts, trigger: 'stale', force: false }),
        },
      ]
    }),
  )

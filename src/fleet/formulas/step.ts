import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import type { FleetAgent } from '../../domain/fleet/agent.ts'
import type { DoneRefusal } from '../../domain/fleet/done-refusal.ts'
import type { FormulaRun } from '../../domain/fleet/formula.ts'
import type { Item } from '../../domain/fleet/item.ts'
import type { Store } from '../../store/store.ts'
import type { FormulaRunPatch } from '../../store/fleet/store.ts'
import type { FleetContext } from '../context.ts'

/** What a step works on, read again before each step. */
export type StepSubject = {
  readonly run: FormulaRun
  readonly agent: FleetAgent
  /** Undefined for a crew member's own work. */
  readonly item: Item | undefined
  readonly codebase: Codebase
  readonly environment: IsolatedEnvironment | undefined
  readonly signal?: AbortSignal | undefined
}

export type StepResult =
  | {
      readonly state: 'done' | 'skipped'
      readonly detail?: string
      /** Values that later steps or the answer need. */
      readonly patch?: FormulaRunPatch
      /** Runs in the transaction that marks the step as done, so its changes happen exactly once. */
      readonly record?: (store: Store) => Promise<void>
    }
  /** The agent, or a person, has to do something first. */
  | { readonly state: 'refused'; readonly why: readonly DoneRefusal[] }
  /** A process outside the session continues the run. */
  | { readonly state: 'handed-over' }

/**
 * One step. It must be safe to repeat after a crash, so it checks what it changes outside the store before changing it.
 */
export type Step = (context: FleetContext, subject: StepSubject) => Promise<StepResult>

export const refusal = (...why: readonly DoneRefusal[]): StepResult => ({ state: 'refused', why })

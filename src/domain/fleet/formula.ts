import type { ProcessIdentity } from '../process-identity.ts'
import type { Sha } from '../names.ts'
import type { DoneRefusal } from './done-refusal.ts'

/** The steps that a formula can be made of. A repository's formula may also have `run: <command>`. */
export const builtInSteps = [
  'validate',
  'validate-discard',
  'intent',
  'push',
  'open-pr',
  'enqueue',
  'notify',
  'settle',
  'leave',
] as const
export type BuiltInStep = (typeof builtInSteps)[number]

export const doneModes = ['push', 'pr', 'land', 'discard'] as const
export type DoneMode = (typeof doneModes)[number]

/** What happens on `coppice done`, by mode. Each step is a checkpoint. */
export const builtInFormulas: Readonly<Record<DoneMode, readonly BuiltInStep[]>> = {
  push: ['validate', 'intent', 'push', 'notify', 'settle', 'leave'],
  pr: ['validate', 'intent', 'push', 'open-pr', 'notify', 'settle', 'leave'],
  land: ['validate', 'intent', 'push', 'enqueue', 'notify', 'settle', 'leave'],
  discard: ['validate-discard', 'intent', 'notify', 'settle', 'leave'],
}

export type CommandStep = { readonly run: string; readonly timeoutMs: number }
export type FormulaStep = BuiltInStep | CommandStep

/** A name and its steps. A run keeps the steps that it started with. */
export type Formula = { readonly name: string; readonly steps: readonly FormulaStep[] }

export type StepState = 'pending' | 'running' | 'done' | 'skipped' | 'failed'

export type StepRecord = {
  readonly step: FormulaStep
  readonly state: StepState
  readonly at?: number
  /** Why it was skipped or failed. */
  readonly detail?: string
  /** What the agent has to do first, if the step refused. */
  readonly why?: readonly DoneRefusal[]
}

export const stepName = (step: FormulaStep): string => (typeof step === 'string' ? step : `run: ${step.run}`)

/** running: being executed, or interrupted by a crash. refused: had no effect, and can be repeated. */
export type FormulaRunState = 'running' | 'done' | 'refused'

/** One `coppice done`, from the first step to the last. */
export type FormulaRun = {
  readonly id: string
  readonly agentId: string
  readonly itemId: number | undefined
  readonly formula: string
  readonly steps: readonly StepRecord[]
  readonly state: FormulaRunState
  readonly branch: string
  readonly sha: Sha | undefined
  readonly pullRequest: string | undefined
  /** `--close` of `discard`. */
  readonly close: boolean
  /** The process that is executing it. If that has died, any process may take over. */
  readonly holder: { readonly host: string; readonly process: ProcessIdentity } | undefined
  /** The `coppice done` that waits while the server executes it. While it lives, the session isn't ended. */
  readonly waiter: ProcessIdentity | undefined
  readonly createdAt: number
  readonly updatedAt: number
}

export const hasStep = ({ steps }: Pick<FormulaRun, 'steps'>, step: BuiltInStep): boolean =>
  steps.some((record) => record.step === step)

/** Whether the intent is recorded. If so, a death doesn't count as a crash at work. */
export const isIntended = ({ steps }: Pick<FormulaRun, 'steps'>): boolean =>
  steps.some(({ step, state }) => step === 'intent' && state === 'done')

/** The first step that isn't done; undefined if all are. */
export const nextStep = (steps: readonly StepRecord[]): number | undefined => {
  const at = steps.findIndex(({ state }) => state !== 'done' && state !== 'skipped')
  return at < 0 ? undefined : at
}

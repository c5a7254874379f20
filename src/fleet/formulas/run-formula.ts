/*
 * What happens on `coppice done`. In: a formula, an agent. Out: each step done once, whoever executes it and however
 * often that one dies. `choose.ts` says which formula, `steps/` what each step does.
 */
import { AppError, toAppError } from '../../domain/errors.ts'
import type { FleetAgent } from '../../domain/fleet/agent.ts'
import type { DoneRefusal } from '../../domain/fleet/done-refusal.ts'
import { type FormulaRun, nextStep, type StepRecord, stepName } from '../../domain/fleet/formula.ts'
import { liveness } from '../../process/identity.ts'
import { isSame } from '../../process/tree.ts'
import type { FleetContext } from '../context.ts'
import type { StepResult, StepSubject } from './step.ts'
import { stepOf } from './steps/registry.ts'

export type FormulaOutcome =
  | { readonly outcome: 'done' | 'handed-over'; readonly run: FormulaRun }
  | {
      readonly outcome: 'refused'
      readonly run: FormulaRun
      readonly step: string
      readonly why: readonly DoneRefusal[]
    }
  /** A living process executes it. */
  | { readonly outcome: 'busy'; readonly run: FormulaRun }

/** Executes what is left of a run. Only one process does at a time; of a dead one, anybody takes over. */
export const continueFormula = async (
  context: FleetContext,
  runId: string,
  { signal }: { readonly signal?: AbortSignal | undefined } = {},
): Promise<FormulaOutcome> => {
  const { store, host, self } = context.isolation
  const run = await store.formulaRuns.get(runId)
  if (run === undefined) throw new AppError('not-found', 'this run of a formula is not recorded')
  if (run.state === 'refused') return { outcome: 'refused', run, step: '', why: [] }
  if (run.state === 'done') return { outcome: 'done', run }
  const holder = { host, process: self }
  const isOurs = run.holder !== undefined && run.holder.host === host && isSame(run.holder.process, self)
  if (!isOurs && isHeld(context, run)) return { outcome: 'busy', run }
  if (!isOurs && !(await store.formulaRuns.claim(run.id, run.holder, holder))) return { outcome: 'busy', run }
  try {
    return await executeAll(context, run.id, signal)
  } finally {
    await release(context, run.id)
  }
}

/** Unknown counts as alive. */
const isHeld = ({ isolation: { host } }: FleetContext, { holder }: FormulaRun): boolean =>
  holder !== undefined && (holder.host !== host || liveness(holder.process) !== 'dead')

const executeAll = async (
  context: FleetContext,
  runId: string,
  signal: AbortSignal | undefined,
): Promise<FormulaOutcome> => {
  const { store, clock, failpoint } = context.isolation
  for (;;) {
    const subject = await subjectOf(context, runId, signal)
    const { run } = subject
    const at = nextStep(run.steps)
    const record = at === undefined ? undefined : run.steps[at]
    if (at === undefined || record === undefined) {
      await store.formulaRuns.update(run.id, { state: 'done' }, clock())
      return { outcome: 'done', run: { ...run, state: 'done' } }
    }
    const name = stepName(record.step)
    await store.formulaRuns.update(run.id, { steps: withStep(run, at, { state: 'running', at: clock() }) }, clock())
    await failpoint(`formula.${name}.begun`)
    const result = await execute(context, subject, record).catch(async (error: unknown) => {
      if (!isIntended(run)) await giveBack(context, subject, at, [])
      throw error
    })
    await failpoint(`formula.${name}.effect`)
    if (result.state === 'handed-over') return { outcome: 'handed-over', run }
    if (result.state === 'refused') return giveBack(context, subject, at, result.why)
    await store.transaction(async (inside) => {
      const now = clock()
      await result.record?.(inside)
      const { state, detail } = result
      const steps = withStep(run, at, { state, at: now, ...(detail !== undefined && { detail }) })
      await inside.formulaRuns.update(run.id, { ...result.patch, steps }, now)
    })
    await failpoint(`formula.${name}.done`)
  }
}

/**
 * Whoever executes it has died. Once the intent is recorded the rest is done; before that nothing has happened, and
 * whether the work is finished is for the agent to say again.
 */
export const finishFormula = async (context: FleetContext, run: FormulaRun): Promise<FormulaOutcome> => {
  if (isIntended(run)) return continueFormula(context, run.id)
  const { store, host, self, clock } = context.isolation
  if (isHeld(context, run)) return { outcome: 'busy', run }
  if (!(await store.formulaRuns.claim(run.id, run.holder, { host, process: self }))) return { outcome: 'busy', run }
  await store.formulaRuns.update(run.id, { state: 'refused', holder: undefined }, clock())
  return { outcome: 'refused', run: { ...run, state: 'refused' }, step: '', why: [] }
}

/** From here on, a death means that the agent was finishing. */
export const isIntended = ({ steps }: FormulaRun): boolean =>
  steps.some(({ step, state }) => step === 'intent' && state === 'done')

const execute = async (context: FleetContext, subject: StepSubject, { step }: StepRecord): Promise<StepResult> => {
  try {
    return await stepOf(step)(context, subject)
  } catch (error) {
    if (subject.signal?.aborted === true) throw error
    const { code, message, remedy } = toAppError(error)
    const options = { cause: error, ...(remedy !== undefined && { remedy }) }
    throw new AppError(code, `the step \`${stepName(step)}\` failed: ${message}`, options)
  }
}

/** It refused or failed before the item was settled: the agent works on, and may try again. */
const giveBack = async (
  { isolation: { store, clock } }: FleetContext,
  { run, agent }: StepSubject,
  at: number,
  why: readonly DoneRefusal[],
): Promise<FormulaOutcome> => {
  const steps = withStep(run, at, { state: 'failed', at: clock(), detail: why.map(({ kind }) => kind).join(', ') })
  await store.transaction(async (inside) => {
    await inside.formulaRuns.update(run.id, { state: 'refused', steps }, clock())
    const current = await inside.fleetAgents.get(agent.id)
    if (current?.state === 'finishing') await inside.fleetAgents.move(agent.id, 'finishing', 'working')
  })
  const step = run.steps[at]?.step
  const name = step === undefined ? '' : stepName(step)
  return { outcome: 'refused', run: { ...run, steps, state: 'refused' }, step: name, why }
}

const withStep = ({ steps }: FormulaRun, at: number, change: Partial<StepRecord>): readonly StepRecord[] =>
  steps.map((one, i) => (i === at ? { ...one, ...change } : one))

const subjectOf = async (
  { isolation: { store } }: FleetContext,
  runId: string,
  signal: AbortSignal | undefined,
): Promise<StepSubject> => {
  const run = await store.formulaRuns.get(runId)
  const agent = run && (await store.fleetAgents.get(run.agentId))
  const codebase = agent && (await store.codebases.get(agent.codebaseId))
  if (run === undefined || agent === undefined || codebase === undefined) {
    throw new AppError('not-found', 'the agent of this formula is no longer recorded')
  }
  const item = run.itemId === undefined ? undefined : await store.items.get(run.itemId)
  const environment = await environmentOf(store, agent)
  return { run, agent, item, codebase, environment, signal }
}

const environmentOf = async (
  store: FleetContext['isolation']['store'],
  { environmentId }: FleetAgent,
): Promise<StepSubject['environment']> => {
  const found = environmentId === undefined ? undefined : await store.environments.get(environmentId)
  return found?.status === 'removed' || found?.status === 'released' ? undefined : found
}

const release = async ({ isolation: { store, clock, self, host } }: FleetContext, runId: string): Promise<void> => {
  const run = await store.formulaRuns.get(runId)
  const isOurs = run?.holder?.host === host && isSame(run.holder.process, self)
  if (isOurs) await store.formulaRuns.update(runId, { holder: undefined }, clock())
}

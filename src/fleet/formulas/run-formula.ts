/*
 * Executes a formula for `coppice done`. In: a formula and an agent. Out: each step done exactly once, whichever
 * process executes it and however often one dies. `choose.ts` picks the formula; `steps/` has the steps.
 */
import { AppError, toAppError } from '../../domain/errors.ts'
import type { FleetAgent } from '../../domain/fleet/agent.ts'
import type { DoneRefusal } from '../../domain/fleet/done-refusal.ts'
import { onlyPersonCanChange } from '../../domain/fleet/needs-person.ts'
import { type FormulaRun, isIntended, nextStep, type StepRecord, stepName } from '../../domain/fleet/formula.ts'
import { liveness } from '../../process/identity.ts'
import { isSame } from '../../process/tree.ts'
import type { Store } from '../../store/store.ts'
import type { FleetContext } from '../context.ts'
import type { StepResult, StepSubject } from './step.ts'
import { notifyRefused } from '../events/notify-refused.ts'
import { stepOf } from './steps/registry.ts'

export type FormulaOutcome =
  | { readonly outcome: 'done' | 'handed-over'; readonly run: FormulaRun }
  | {
      readonly outcome: 'refused'
      readonly run: FormulaRun
      readonly step: string
      readonly why: readonly DoneRefusal[]
    }
  /** Another live process is executing it. */
  | { readonly outcome: 'busy'; readonly run: FormulaRun }
  /** The intent is recorded, and the caller asked for no more. */
  | { readonly outcome: 'intended'; readonly run: FormulaRun }
  /** Only `leave` is left, which the waiting command does. */
  | { readonly outcome: 'waited-for'; readonly run: FormulaRun }

export type ContinueOptions = {
  readonly signal?: AbortSignal | undefined
  readonly until?: 'intended'
}

/**
 * Executes the remaining steps of a run. Only one process does so at a time; any process can take over from a dead one.
 */
export const continueFormula = async (
  context: FleetContext,
  runId: string,
  options: ContinueOptions = {},
): Promise<FormulaOutcome> => {
  const run = await runOf(context, runId)
  if (run.state === 'refused') return refused(run)
  if (run.state === 'done') return { outcome: 'done', run }
  if (!(await take(context, run))) return { outcome: 'busy', run }
  try {
    return await executeAll(context, run.id, options)
  } finally {
    await release(context, run.id)
  }
}

/**
 * Takes over a run whose process has died. Once the intent is recorded, the remaining steps are executed. Before that,
 * nothing has taken effect, so the run is refused and the agent has to call `done` again.
 */
export const takeOverFormula = async (
  context: FleetContext,
  run: FormulaRun,
  options: ContinueOptions = {},
): Promise<FormulaOutcome> => {
  if (isIntended(run)) return continueFormula(context, run.id, options)
  if (!(await take(context, run))) return { outcome: 'busy', run }
  try {
    await context.isolation.store.formulaRuns.update(run.id, { state: 'refused' }, context.isolation.clock())
    return refused({ ...run, state: 'refused' })
  } finally {
    await release(context, run.id)
  }
}

/** Nobody is to finish what this agent has begun. Call in a transaction. False if somebody is just doing it. */
export const abandonFormula = async (context: FleetContext, store: Store, agentId: string): Promise<boolean> => {
  const { host, self, clock } = context.isolation
  const begun = await store.formulaRuns.runningOf(agentId)
  if (begun === undefined) return true
  if (isHeld(context, begun)) return false
  if (!(await store.formulaRuns.claim(begun.id, begun.holder, { host, process: self }))) return false
  await store.formulaRuns.update(begun.id, { state: 'refused', holder: undefined }, clock())
  return true
}

export const runOf = async ({ isolation: { store } }: FleetContext, id: string): Promise<FormulaRun> => {
  const run = await store.formulaRuns.get(id)
  if (run === undefined) throw new AppError('not-found', 'unknown formula run')
  return run
}

export const refused = (run: FormulaRun): FormulaOutcome => {
  const failed = run.steps.find(({ state }) => state === 'failed')
  return { outcome: 'refused', run, step: failed === undefined ? '' : stepName(failed.step), why: failed?.why ?? [] }
}

/** Unknown counts as alive. */
export const isHeld = (
  { isolation: { host } }: Pick<FleetContext, 'isolation'>,
  { holder }: Pick<FormulaRun, 'holder'>,
): boolean => holder !== undefined && (holder.host !== host || liveness(holder.process) !== 'dead')

const take = async (context: FleetContext, run: FormulaRun): Promise<boolean> => {
  const { store, host, self } = context.isolation
  if (context.executing.has(run.id)) return false
  // Locks out other callers in this process; the claim below locks out other processes.
  context.executing.add(run.id)
  const isOurs = run.holder !== undefined && run.holder.host === host && isSame(run.holder.process, self)
  const holder = { host, process: self }
  const taken = isOurs || (!isHeld(context, run) && (await store.formulaRuns.claim(run.id, run.holder, holder)))
  if (!taken) context.executing.delete(run.id)
  return taken
}

const release = async (context: FleetContext, runId: string): Promise<void> => {
  const { store, clock, self, host } = context.isolation
  try {
    const run = await store.formulaRuns.get(runId)
    const isOurs = run?.holder?.host === host && isSame(run.holder.process, self)
    if (isOurs) await store.formulaRuns.update(runId, { holder: undefined }, clock())
  } finally {
    context.executing.delete(runId)
  }
}

const executeAll = async (
  context: FleetContext,
  runId: string,
  { signal, until }: ContinueOptions,
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
    if (name === 'leave' && isAwaited(context, run)) return { outcome: 'waited-for', run }
    const isEnough = until === 'intended' && isIntended(run)
    const began: StepRecord = { step: record.step, state: isEnough ? 'pending' : 'running', at: clock() }
    await store.formulaRuns.update(run.id, { steps: withStep(run, at, began) }, clock())
    if (isEnough) return { outcome: 'intended', run }
    await failpoint(`formula.${name}.begun`)
    const result = await execute(context, subject, record).catch(async (error: unknown) => {
      await noteFailure(context, subject, at, began, error)
      throw error
    })
    await failpoint(`formula.${name}.effect`)
    if (result.state === 'handed-over') return { outcome: 'handed-over', run }
    if (result.state === 'refused') return refuseRun(context, subject, at, result.why)
    await store.transaction(async (inside) => {
      const now = clock()
      await result.record?.(inside)
      const { state, detail, branch } = result
      const more = { ...(detail !== undefined && { detail }), ...(branch !== undefined && { branch }) }
      const steps = withStep(run, at, { step: record.step, state, at: now, ...more })
      await inside.formulaRuns.update(run.id, { ...result.patch, steps }, now)
    })
    await failpoint(`formula.${name}.done`)
  }
}

/** Another live process, a `coppice done`, is waiting for this run. */
const isAwaited = ({ isolation: { self } }: FleetContext, { waiter }: FormulaRun): boolean =>
  waiter !== undefined && !isSame(waiter, self) && liveness(waiter) !== 'dead'

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

/**
 * Before the intent, the run is refused, and the agent decides what to do. After it, the next process retries the step.
 */
const noteFailure = async (
  context: FleetContext,
  subject: StepSubject,
  at: number,
  began: StepRecord,
  error: unknown,
): Promise<void> => {
  const { run, signal } = subject
  if (!isIntended(run)) return void (await refuseRun(context, subject, at, []))
  // Cancelled, not failed: the next process continues.
  if (signal?.aborted === true) return
  const { store, clock } = context.isolation
  const steps = withStep(run, at, { ...began, detail: toAppError(error).message })
  await store.formulaRuns.update(run.id, { steps }, clock())
}

/** Ends the run as refused. The agent goes back to `working` and may call `done` again. */
const refuseRun = async (
  context: FleetContext,
  subject: StepSubject,
  at: number,
  why: readonly DoneRefusal[],
): Promise<FormulaOutcome> => {
  const { store, clock } = context.isolation
  const { run, agent } = subject
  const steps = withStep(run, at, { state: 'failed', at: clock(), why })
  await store.transaction(async (inside) => {
    await inside.formulaRuns.update(run.id, { state: 'refused', steps }, clock())
    const current: FleetAgent | undefined = await inside.fleetAgents.get(agent.id)
    if (current?.state === 'finishing') await inside.fleetAgents.move(agent.id, 'finishing', 'working')
    await notifyRefused(context, inside, subject, why.find(onlyPersonCanChange))
  })
  return refused({ ...run, steps, state: 'refused' })
}

/** A change with `step` replaces the record; otherwise it is merged into it. */
const withStep = ({ steps }: FormulaRun, at: number, change: Partial<StepRecord>): readonly StepRecord[] =>
  steps.map((one, i) => {
    if (i !== at) return one
    const { step, state } = one
    return change.step === undefined ? { ...one, ...change } : { step, state, ...change }
  })

const subjectOf = async (
  context: FleetContext,
  runId: string,
  signal: AbortSignal | undefined,
): Promise<StepSubject> => {
  const { store } = context.isolation
  const run = await runOf(context, runId)
  const agent = await store.fleetAgents.get(run.agentId)
  const codebase = agent && (await store.codebases.get(agent.codebaseId))
  if (agent === undefined || codebase === undefined) {
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

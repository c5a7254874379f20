import { AppError } from '../../domain/errors.ts'
import type { FleetAgent } from '../../domain/fleet/agent.ts'
import type { DoneRefusal } from '../../domain/fleet/done-refusal.ts'
import type { FormulaRun } from '../../domain/fleet/formula.ts'
import type { FleetContext } from '../context.ts'
import { chooseFormula } from './choose.ts'
import { continueFormula, type FormulaOutcome } from './run-formula.ts'

export type DoneRequest = {
  /** As the session's variables say. */
  readonly agent: string | undefined
  readonly spawn: string | undefined
  /** Default: the pool's `done`. */
  readonly mode?: string | undefined
  /** With `discard`: the item is closed, not open again. */
  readonly close?: boolean
  readonly signal?: AbortSignal
}

export type Done = FormulaOutcome | { readonly outcome: 'not-started'; readonly why: DoneRefusal }

/**
 * `coppice done`, run by the agent. Running it again continues what an interrupted one has begun, and changes nothing
 * once it is done.
 */
export const done = async (context: FleetContext, request: DoneRequest): Promise<Done> => {
  const { store, host } = context.isolation
  const { agent: name, spawn, signal } = request
  if (name === undefined || spawn === undefined) return { outcome: 'not-started', why: { kind: 'no-agent' } }
  const agent = await store.fleetAgents.byName(host, name)
  if (agent === undefined || agent.spawn !== spawn) {
    return { outcome: 'not-started', why: { kind: 'other-life', agent: name } }
  }
  const begun = await store.formulaRuns.runningOf(agent.id)
  const run = begun ?? (await begin(context, agent, request))
  return continueFormula(context, run.id, { signal })
}

const begin = async (context: FleetContext, agent: FleetAgent, request: DoneRequest): Promise<FormulaRun> => {
  const { store, clock, ids, settings, host, self } = context.isolation
  const codebase = await store.codebases.get(agent.codebaseId)
  const environment = agent.environmentId === undefined ? undefined : await store.environments.get(agent.environmentId)
  if (codebase === undefined) throw new AppError('not-found', `the repository of ${agent.name} is no longer registered`)
  const pool = settings.pools.find((one) => one.name === agent.pool)
  const formula = await chooseFormula(context, codebase, request.mode ?? pool?.done ?? 'auto')
  const now = clock()
  const run: FormulaRun = {
    id: ids(),
    agentId: agent.id,
    itemId: agent.itemId,
    formula: formula.name,
    steps: formula.steps.map((step) => ({ step, state: 'pending' })),
    state: 'running',
    branch: environment?.branch ?? '',
    sha: undefined,
    pullRequest: undefined,
    close: request.close === true,
    holder: { host, process: self },
    createdAt: now,
    updatedAt: now,
  }
  if (await store.formulaRuns.insert(run)) return run
  const other = await store.formulaRuns.runningOf(agent.id)
  if (other !== undefined) return other
  throw new AppError('busy', 'another `coppice done` of this agent has just ended; run it again')
}

/** Finishes what dead processes have begun: whoever sees it first does it. */
export const finishFormulas = async (context: FleetContext): Promise<readonly FormulaOutcome[]> => {
  const outcomes: FormulaOutcome[] = []
  for (const run of await context.isolation.store.formulaRuns.running()) {
    try {
      outcomes.push(await continueFormula(context, run.id))
    } catch (error) {
      context.isolation.log.warn('a formula could not be finished', { formula: run.formula, error })
    }
  }
  return outcomes
}

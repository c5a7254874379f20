import type { Codebase } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import type { FleetAgent } from '../../domain/fleet/agent.ts'
import type { DoneRefusal } from '../../domain/fleet/done-refusal.ts'
import { type FormulaRun, isIntended } from '../../domain/fleet/formula.ts'
import { type AgentCaller, isInside, startedAgent } from '../caller.ts'
import type { FleetContext } from '../context.ts'
import { finishByServer } from './by-server.ts'
import { chooseFormula } from './choose.ts'
import { continueFormula, type FormulaOutcome, takeOverFormula } from './run-formula.ts'

export type DoneRequest = AgentCaller & {
  /** Default: the pool's `done`. */
  readonly mode?: string | undefined
  /** With `discard`: close the item instead of reopening it. */
  readonly close?: boolean
  readonly signal?: AbortSignal
}

export type Done = FormulaOutcome | { readonly outcome: 'not-started'; readonly why: DoneRefusal }

/** `coppice done`, run by the agent. Running it again continues an interrupted run; a completed one changes nothing. */
export const done = async (context: FleetContext, request: DoneRequest): Promise<Done> => {
  const found = await startedAgent(context.isolation, request, request.signal)
  if ('why' in found) return { outcome: 'not-started', why: found.why }
  const begun = await context.isolation.store.formulaRuns.runningOf(found.agent.id)
  // A run that died before its intent had no effect, so this one may use another formula.
  const isAbandoned =
    begun !== undefined && !isIntended(begun) && (await takeOverFormula(context, begun)).outcome === 'refused'
  const run = begun === undefined || isAbandoned ? await begin(context, found, request) : begun
  const { signal } = request
  if (!isInside(context.isolation, found.agent)) return continueFormula(context, run.id, { signal })
  const intended = await continueFormula(context, run.id, { signal, until: 'intended' })
  return intended.outcome === 'intended' ? finishByServer(context, run.id, signal) : intended
}

const begin = async (
  context: FleetContext,
  { agent, codebase }: { readonly agent: FleetAgent; readonly codebase: Codebase },
  request: DoneRequest,
): Promise<FormulaRun> => {
  const { store, clock, ids, settings, host, self } = context.isolation
  const environment = agent.environmentId === undefined ? undefined : await store.environments.get(agent.environmentId)
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
    waiter: undefined,
    createdAt: now,
    updatedAt: now,
  }
  if (await store.formulaRuns.insert(run)) return run
  const other = await store.formulaRuns.runningOf(agent.id)
  if (other !== undefined) return other
  throw new AppError('busy', 'another `coppice done` of this agent has just ended; run it again')
}

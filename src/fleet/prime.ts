/*
 * `coppice prime`: everything that an agent needs to start or continue its item. In: the agent's variables. Out:
 * values; the wording is in `commands/views/`.
 */
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { toAppError } from '../domain/errors.ts'
import type { FleetAgent } from '../domain/fleet/agent.ts'
import type { Item, ItemChange, ParkReason, UnhookReason } from '../domain/fleet/item.ts'
import type { UncommittedWork } from '../domain/removal/uncommitted.ts'
import { branchCommits } from '../isolation/codebases/branch-commits.ts'
import { providerOf } from '../isolation/provider-of.ts'
import type { CommitLine } from '../git/commits-between.ts'
import { type AgentCaller, type NotTheAgent, currentAgent } from './caller.ts'
import type { FleetContext } from './context.ts'
import { chooseFormula } from './formulas/choose.ts'
import { treeOf } from './tree.ts'

export type Primer = {
  readonly agent: FleetAgent
  readonly codebase: Codebase
  readonly environment: IsolatedEnvironment | undefined
  readonly item: Item | undefined
  /** The items that it had to wait for. */
  readonly after: readonly Item[]
  readonly commits: readonly CommitLine[]
  /** Undefined: unknown. */
  readonly uncommitted: UncommittedWork | undefined
  readonly attempts: readonly Attempt[]
  /** What `coppice done` runs; undefined if it can't be determined. */
  readonly formula: string | undefined
  /** The pool's own template. */
  readonly template: string | undefined
}

/** An earlier attempt at the item, and how it ended. */
export type Attempt = {
  readonly at: number
  readonly agent: string | undefined
  readonly ended: UnhookReason | ParkReason | Extract<ItemChange, { kind: 'sent-back' }>
}

const MOST_COMMITS = 50

export const primeAgent = async (context: FleetContext, caller: AgentCaller): Promise<Primer | NotTheAgent> => {
  const { isolation } = context
  const { store, settings } = isolation
  const found = await currentAgent(isolation, caller)
  if ('why' in found) return found
  const { agent, codebase } = found
  const environment = agent.environmentId === undefined ? undefined : await store.environments.get(agent.environmentId)
  const item = agent.itemId === undefined ? undefined : await store.items.get(agent.itemId)
  const pool = settings.pools.find(({ name }) => name === agent.pool)
  const there = environment?.status === 'active' ? environment : undefined
  const after = await Promise.all((item?.after ?? []).map((id) => store.items.get(id)))
  return {
    agent,
    codebase,
    environment,
    item,
    after: after.filter((one) => one !== undefined),
    commits: (there && (await branchCommits(isolation, codebase, there, { limit: MOST_COMMITS }))) ?? [],
    uncommitted: there && (await uncommittedIn(context, codebase, there)),
    attempts: item === undefined ? [] : await attemptsAt(store, item),
    formula: await formulaName(context, codebase, pool?.done ?? 'auto'),
    template: pool?.prompt,
  }
}

const uncommittedIn = async (
  { isolation }: FleetContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
): Promise<UncommittedWork | undefined> => {
  try {
    const tree = await treeOf(isolation, codebase, environment)
    const provider = await providerOf(isolation, environment)
    return (await provider.glance(isolation, tree, { signal: undefined })).dirty
  } catch (error) {
    isolation.log.info("an agent's worktree could not be inspected", { error: toAppError(error).message })
    return undefined
  }
}

const attemptsAt = async (store: FleetContext['isolation']['store'], item: Item): Promise<readonly Attempt[]> =>
  (await store.items.history(item.id)).flatMap(({ at, change }): Attempt[] => {
    switch (change.kind) {
      case 'unhooked':
      case 'restarted':
        return [{ at, agent: change.agent, ended: change.why }]
      case 'parked':
        return [{ at, agent: undefined, ended: change.reason }]
      case 'sent-back':
        return [{ at, agent: undefined, ended: change }]
      default:
        return []
    }
  })

const formulaName = async (context: FleetContext, codebase: Codebase, wanted: string): Promise<string | undefined> => {
  try {
    return (await chooseFormula(context, codebase, wanted)).name
  } catch (error) {
    context.isolation.log.info('the formula of an agent is unknown', { wanted, error: toAppError(error).message })
    return undefined
  }
}

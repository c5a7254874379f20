import type { IsolatedEnvironment } from '../../domain/environment.ts'
import type { FleetAgent } from '../../domain/fleet/agent.ts'
import { shellWord } from '../../domain/text/shell-word.ts'
import { counted } from '../../domain/text/words.ts'
import { type DownReport, fleetDown as bringDown } from '../../fleet/down.ts'
import { reconcilePools, type PoolsReport } from '../../fleet/reconcile-pools.ts'
import { type FleetProblem, fleetUp as bringUp, type UpReport } from '../../fleet/up.ts'
import { absentAgent } from '../../fleet/peek-and-nudge.ts'
import type { FleetContext } from '../../fleet/context.ts'
import { type Call, command, isSet, textOf } from '../../commands/command.ts'
import { usage } from '../../commands/grammar/usage.ts'
import { changerOf } from '../../commands/fleet/scope.ts'
import { agentJson } from '../../commands/views/agents.ts'
import { exitCodes } from '../../commands/views/failure.ts'
import { describeReasons, reasonJson } from '../../commands/views/reasons.ts'
import { lastCommand, printable, tilde, type View } from '../../commands/views/view.ts'

/** What the agents of a report are shown with. */
type Named = {
  readonly codebases: ReadonlyMap<string, string>
  readonly environments: ReadonlyMap<string, IsolatedEnvironment>
  /** Only the agents that were asked for; empty: the whole fleet. */
  readonly only: readonly string[]
}
type Up = UpReport & Named & { readonly pools: PoolsReport }
type Down = DownReport & Named

const namedIn = async (
  { isolation: { store, host } }: FleetContext,
  agents: readonly FleetAgent[],
  only: readonly string[],
): Promise<Named> => {
  const codebases = new Map((await store.codebases.list(host)).map(({ id, name }) => [id, name]))
  const environments = new Map<string, IsolatedEnvironment>()
  for (const { environmentId } of agents) {
    const environment = environmentId === undefined ? undefined : await store.environments.get(environmentId)
    if (environment?.status === 'active') environments.set(environment.id, environment)
  }
  return { codebases, environments, only }
}

/** Throws for an unknown name. */
const assertKnown = async (fleet: FleetContext, names: readonly string[]): Promise<void> => {
  const { store, host } = fleet.isolation
  for (const name of names)
    if ((await store.fleetAgents.byName(host, name)) === undefined) throw absentAgent(fleet, name)
}

const up = async (call: Call): Promise<Up> => {
  const fleet = await (await call.open()).fleet()
  await assertKnown(fleet, call.words)
  const report = await bringUp(fleet, { by: changerOf(call, fleet), only: call.words })
  const none = { started: [], draining: [], gone: [], problems: [] }
  const { started, running, released, kept } = report
  return {
    ...report,
    pools: call.words.length === 0 ? await reconcilePools(fleet) : none,
    ...(await namedIn(fleet, [...started, ...running, ...released, ...kept], call.words)),
  }
}

const down = async (call: Call): Promise<Down> => {
  const given = textOf(call.values, 'grace')
  if (given !== undefined && !/^\d{1,4}$/.test(given)) {
    throw usage(`invalid --grace ${JSON.stringify(given)}`, 'usage: --grace <seconds>')
  }
  const fleet = await (await call.open()).fleet()
  await assertKnown(fleet, call.words)
  const report = await bringDown(fleet, {
    by: changerOf(call, fleet),
    clean: isSet(call.values, 'clean'),
    only: call.words,
    ...(given !== undefined && { graceMs: Number(given) * 1000 }),
  })
  return { ...report, ...(await namedIn(fleet, [...report.stopped, ...report.removed], call.words)) }
}

const listing = (title: string, names: readonly string[]): string[] =>
  names.length === 0 ? [] : [`  ${title}: ${names.join(', ')}`]

const nameList = (agents: readonly FleetAgent[]): string[] => agents.map(({ name }) => name).toSorted()

const problemLines = (problems: readonly FleetProblem[], view: View): string[] =>
  problems.map(({ agent, why }) => `  ${view.paint('red', 'problem')} ${printable(`${agent}: ${why}`)}`)

const upText = (result: Up, view: View): string => {
  const { started, running, released, kept, rebuilt, ended, problems, pools, only } = result
  const live = started.length + running.length + pools.started.length
  return [
    only.length === 0
      ? `${view.paint('green', 'The fleet is up')}: ${counted(live, 'agent')}.`
      : `${view.paint('green', 'Started')} ${counted(started.length, 'agent')}.`,
    ...listing('rebuilt from their worktrees', rebuilt.agents),
    ...listing('started', [...nameList(started), ...pools.started]),
    ...listing('already running', nameList(running)),
    ...listing('removed because they had no item', nameList(released)),
    ...listing("kept without an item because removing their worktrees isn't safe", nameList(kept)),
    ...listing('ended stray sessions', ended),
    ...problemLines(problems, view),
    ...pools.problems.map(({ pool, why }) => `  ${view.paint('red', 'problem')} ${printable(`pool ${pool}: ${why}`)}`),
  ].join('\n')
}

const downText = ({ stopped, removed, kept, problems, only }: Down, view: View): string => {
  const nothing = stopped.length + removed.length + kept.length + problems.length === 0
  return [
    nothing
      ? 'No agents were running.'
      : `${view.paint('green', 'Stopped')} ${counted(stopped.length + removed.length, 'agent')}.`,
    ...listing('stopped, worktree and item kept', nameList(stopped)),
    ...listing('removed with their worktrees', nameList(removed)),
    ...kept.map(
      ({ agent, environment, reasons }) =>
        `  kept ${agent.name} (${tilde(environment.path, view)}): ${printable(describeReasons(reasons))}`,
    ),
    ...problemLines(problems, view),
    ...(stopped.length === 0
      ? []
      : [`Continue with: ${lastCommand(view.commandText(['fleet up', ...only.map(shellWord)].join(' ')), view)}`]),
  ].join('\n')
}

const asJson = (agent: FleetAgent, { codebases, environments }: Named) =>
  agentJson({
    agent,
    codebase: codebases.get(agent.codebaseId) ?? '',
    environment: environments.get(agent.environmentId ?? ''),
  })

export const fleetUp = command<Up>({
  run: up,
  toText: upText,
  toJson: (result) => ({
    started: result.started.map((agent) => asJson(agent, result)),
    running: result.running.map((agent) => asJson(agent, result)),
    released: result.released.map((agent) => asJson(agent, result)),
    kept: result.kept.map((agent) => asJson(agent, result)),
    rebuilt: { agents: result.rebuilt.agents, items: result.rebuilt.items },
    ended: result.ended,
    pools: result.pools,
    problems: result.problems,
  }),
  exitCode: ({ problems, pools }) =>
    problems.length + pools.problems.length === 0 ? exitCodes.done : exitCodes.failed,
})

export const fleetDown = command<Down>({
  run: down,
  toText: downText,
  toJson: (result) => ({
    stopped: result.stopped.map((agent) => asJson(agent, result)),
    removed: result.removed.map((agent) => asJson(agent, result)),
    kept: result.kept.map(({ agent, environment, reasons }) => ({
      agent: agent.name,
      path: environment.path,
      reasons: reasons.map(reasonJson),
    })),
    problems: result.problems,
  }),
  exitCode: ({ problems }) => (problems.length === 0 ? exitCodes.done : exitCodes.failed),
})

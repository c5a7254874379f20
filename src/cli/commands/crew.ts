import { shellWord } from '../../domain/text/shell-word.ts'
import type { Codebase } from '../../domain/environment.ts'
import type { FleetAgent } from '../../domain/fleet/agent.ts'
import { addCrew, type CrewAdded, type CrewRemoved, type CrewTree, removeCrew, treesOf } from '../../fleet/crew.ts'
import { resolveCodebase } from '../../isolation/codebases/codebases.ts'
import { type Call, command, cwdOf, listOf, textOf } from '../../commands/command.ts'
import { changerOf } from '../../commands/fleet/scope.ts'
import { agentJson, agentStateWord } from '../../commands/views/agents.ts'
import { exitCodes } from '../../commands/views/failure.ts'
import { placeJson } from '../../commands/views/items.ts'
import { limitJson, limitText } from '../../commands/views/limit.ts'
import { describeReasons, reasonJson } from '../../commands/views/reasons.ts'
import { code, lastCommand, printable, table, tilde, type View } from '../../commands/views/view.ts'

type Trees = readonly Pick<CrewTree, 'codebase' | 'environment'>[]

const crewJson = (agent: FleetAgent, trees: Trees) => ({
  ...agentJson({ agent, codebase: trees[0]?.codebase.name ?? '', environment: trees[0]?.environment }),
  worktrees: trees.map(({ codebase, environment }) => ({ codebase: codebase.name, ...placeJson(environment) })),
})

type Added = CrewAdded & { readonly staleDays: number; readonly canAttach: boolean }

const add = async (call: Call): Promise<Added> => {
  const workplace = await call.open()
  const { context, keepSpares } = workplace
  const fleet = await workplace.fleet()
  const codebases = await codebasesOf(call, context)
  const added = await addCrew(fleet, {
    name: call.words[0] ?? '',
    codebases,
    agent: textOf(call.values, 'agent'),
    by: changerOf(call, fleet),
    signal: call.signal,
  })
  if (added.outcome === 'added') {
    for (const notice of added.trees.flatMap(({ notices }) => notices)) call.notice(notice)
    for (const { id } of codebases) keepSpares(id)
  }
  const kind = added.outcome === 'added' ? added.agent.session?.kind : undefined
  const canAttach = kind !== undefined && fleet.sessions.of(kind).can.attach
  return { ...added, staleDays: context.settings.staleDays, canAttach }
}

/** `--codebase` may be repeated; default: the current directory's. */
const codebasesOf = async (
  call: Call,
  context: Parameters<typeof resolveCodebase>[0],
): Promise<readonly [Codebase, ...Codebase[]]> => {
  const names = listOf(call.values, 'codebase')
  const [first, ...others] = names
  const find = (name: string | undefined): Promise<Codebase> =>
    resolveCodebase(context, { name, cwd: cwdOf(call), signal: call.signal })
  const rest: Codebase[] = []
  const start = await find(first)
  for (const name of new Set(others)) {
    const codebase = await find(name)
    if (codebase.id !== start.id) rest.push(codebase)
  }
  return [start, ...rest]
}

const addedText = (result: Added, view: View): string => {
  if (result.outcome === 'limit') return limitText(result.report, result.staleDays, view)
  const { agent, trees } = result
  const name = shellWord(agent.name)
  const speak = lastCommand(view.commandText(result.canAttach ? `attach ${name}` : `nudge ${name} "<text>"`), view)
  return [
    `${view.paint('green', 'Added')} ${view.paint('bold', agent.name)} to the crew`,
    ...trees.map(({ codebase, environment }) => `  ${codebase.name}  ${tilde(environment.path, view)}`),
    agent.state === 'working'
      ? `Talk to it: ${speak}`
      : `The fleet is down. Start it: ${lastCommand(view.commandText('fleet up'), view)}`,
  ].join('\n')
}

export const crewAdd = command<Added>({
  run: add,
  toText: addedText,
  toJson: (result, view) =>
    result.outcome === 'limit'
      ? limitJson(result.report, result.staleDays, view)
      : crewJson(result.agent, result.trees),
  exitCode: ({ outcome }) => (outcome === 'added' ? exitCodes.done : exitCodes.refused),
})

type Member = { readonly agent: FleetAgent; readonly trees: Trees }

const list = async (call: Call): Promise<readonly Member[]> => {
  const fleet = await (await call.open()).fleet()
  const { store, host } = fleet.isolation
  const crew = (await store.fleetAgents.live({ host })).filter(({ kind }) => kind === 'crew')
  const members: Member[] = []
  for (const agent of crew) members.push({ agent, trees: await treesOf(fleet, agent.name) })
  return members
}

const listText = (members: readonly Member[], view: View): string =>
  members.length === 0
    ? `The crew has no members. Add one: ${lastCommand(view.commandText('crew add <name>'), view)}`
    : table(
        ['NAME', 'STATE', 'AGENT', 'ITEM', 'REPOSITORIES'],
        members.map(({ agent, trees }) => [
          { text: agent.name, style: 'bold' },
          { text: agentStateWord(agent) },
          { text: agent.program },
          { text: agent.itemId === undefined ? '' : String(agent.itemId) },
          { text: trees.map(({ codebase }) => codebase.name).join(', ') },
        ]),
        view,
      )

export const crewList = command<readonly Member[]>({
  run: list,
  toText: listText,
  toJson: (members) => members.map(({ agent, trees }) => crewJson(agent, trees)),
})

const remove = async (call: Call): Promise<CrewRemoved> =>
  removeCrew(await (await call.open()).fleet(), call.words[0] ?? '')

const removedText = ({ agent, removed, kept }: CrewRemoved, view: View): string =>
  [
    kept.length === 0
      ? `${view.paint('green', 'Removed')} ${agent.name} from the crew`
      : `${agent.name} stays in the crew, because not all worktrees can be removed:`,
    ...removed.map(({ branch, path }) => `  removed ${code(branch, view)} (${tilde(path, view)})`),
    ...kept.map(
      ({ environment, reasons }) => `  kept ${code(environment.branch, view)}: ${printable(describeReasons(reasons))}`,
    ),
  ].join('\n')

export const crewRemove = command<CrewRemoved>({
  run: remove,
  toText: removedText,
  toJson: ({ agent, removed, kept }) => ({
    name: agent.name,
    removed: removed.map(placeJson),
    kept: kept.map(({ environment, reasons }) => ({ ...placeJson(environment), reasons: reasons.map(reasonJson) })),
  }),
  exitCode: ({ kept }) => (kept.length === 0 ? exitCodes.done : exitCodes.refused),
})

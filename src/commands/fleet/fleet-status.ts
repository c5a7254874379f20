import { itemStates } from '../../domain/fleet/item.ts'
import { type FleetStatus, fleetStatus as statusOf } from '../../fleet/status.ts'
import { type Call, command } from '../command.ts'
import { agentCells, agentHeadings, agentJson, describeNeed, needRemedies, needsYouJson } from '../views/agents.ts'
import { stateWord } from '../views/items.ts'
import { remedySentence } from '../views/remedy.ts'
import { fittedTable, lastCommand, printable, type View } from '../views/view.ts'
import { coppice, remedy } from '../../domain/remedy.ts'
import { sentence } from '../../domain/text/words.ts'
import { scopeOf } from './scope.ts'

const run = async (call: Call): Promise<FleetStatus> => {
  const workplace = await call.open()
  // A terminal shows the whole fleet of this machine, wherever it is.
  const isAll = call.chat === undefined && call.codebase === undefined
  const codebase = isAll ? undefined : await scopeOf(call, workplace)
  return statusOf(await workplace.fleet(), { codebaseId: codebase?.id })
}

const startIt = remedy`start it: ${coppice('fleet up')}`

const toText = ({ control, agents, pools, items, needsYou }: FleetStatus, view: View): string => {
  const repositories = new Set(agents.map(({ codebase }) => codebase))
  const counts = itemStates.filter((state) => items[state] > 0).map((state) => `${items[state]} ${stateWord(state)}`)
  return [
    ...(control.state === 'down' ? [`The fleet is down. ${remedySentence(startIt, view)}`] : []),
    agents.length === 0
      ? `No agents.${control.state === 'up' ? ` Start one: ${lastCommand(view.commandText('sling <item>'), view)}` : ''}`
      : fittedTable(
          agentHeadings,
          agents.map((seen) => agentCells(seen, { now: view.now, named: repositories.size > 1 })),
          view,
          { drop: ['REPOSITORY', 'BRANCH', 'POOL'], cut: ['ITEM'] },
        ).text,
    `pools  ${pools.map(({ name, live, max }) => `${name} ${live}/${max}`).join(', ')}`,
    `items  ${counts.length === 0 ? 'none' : counts.join(', ')}${items.ready > 0 ? ` (${items.ready} ready)` : ''}`,
    ...(needsYou.length === 0 ? [] : [view.paint('bold', 'Needs you:')]),
    ...needsYou.flatMap((need) => [
      `${view.chat === true ? '- ' : '  '}${printable(sentence(describeNeed(need)))}`,
      ...needRemedies(need).map((one) => `    ${printable(remedySentence(one, view))}`),
    ]),
  ].join('\n')
}

export const fleetStatus = command<FleetStatus>({
  run,
  toText,
  toJson: ({ control, agents, pools, items, needsYou }) => ({
    state: control.state,
    agents: agents.map(agentJson),
    pools,
    items,
    needsYou: needsYou.map(needsYouJson),
  }),
})

import { mayHaveSession } from '../../domain/fleet/agent.ts'
import { itemStates } from '../../domain/fleet/item.ts'
import { isClean } from '../../domain/removal/uncommitted.ts'
import { counted, sentence } from '../../domain/text/words.ts'
import type { FleetSnapshot, WatchRow } from '../../fleet/watch/snapshot.ts'
import {
  agentStateStyles,
  agentStateWord,
  describeNeed,
  describeNeedOfRow,
  needRemedies,
} from '../../commands/views/agents.ts'
import { stateWord } from '../../commands/views/items.ts'
import { remedySentence } from '../../commands/views/remedy.ts'
import { describeUncommitted } from '../../commands/views/uncommitted.ts'
import { tilde, type View } from '../../commands/views/view.ts'
import { oneLine } from './line.ts'
import type { Picture, Row } from './state.ts'

/** A snapshot in words. What agents have chosen is neutralized here and again where it is drawn; secrets are hidden. */
export const pictureOf = (snapshot: FleetSnapshot, view: View): Picture => {
  const { at, control, pools, items, rows } = snapshot
  const show = shower(view)
  const counts = itemStates.filter((state) => items[state] > 0 && state !== 'landed' && state !== 'closed')
  return {
    at,
    stopped: control.state === 'up' ? undefined : show(stoppedText(control, view)),
    pools: show(pools.map(({ name, live, max }) => `${name} ${live}/${max}`).join(', ')),
    items: counts.map((state) => `${items[state]} ${stateWord(state)}`).join(', '),
    rows: rows.map((row) => rowOf(row, view)),
  }
}

/** Why it is paused is in a row of its own. */
const stoppedText = ({ state }: FleetSnapshot['control'], { commandText }: View): string =>
  `is ${state} (${commandText('fleet up')})`

const shower =
  ({ redact = (text) => text }: View) =>
  (text: string): string =>
    oneLine(redact(text))

const rowOf = (row: WatchRow, view: View): Row => {
  const { key, agent, item, codebase, environment, facts, lastSignAt, needs } = row
  const show = shower(view)
  const [need] = needs
  return {
    key,
    agent: agent && { id: agent.id, name: agent.name },
    ...stateOf(row),
    isPausedFleet: need?.kind === 'paused',
    isRunning: agent !== undefined && mayHaveSession(agent.state),
    item: item && { id: item.id, title: show(item.title), isParked: item.state === 'parked' },
    codebase: show(codebase),
    branch: show(environment?.branch ?? ''),
    ...treeCells(row),
    lastSignAt,
    need: need === undefined ? '' : show(describeNeedOfRow(need)),
    details: [
      ...needs.flatMap((one) => [
        show(sentence(describeNeed(one))),
        ...needRemedies(one).map((way) => show(`  ${remedySentence(way, view)}`)),
      ]),
      ...(item === undefined || needs.some(({ kind }) => kind === 'parked')
        ? []
        : [show(`Item ${item.id}: ${item.title}`)]),
      ...(facts?.dirty === undefined || isClean(facts.dirty)
        ? []
        : [show(`Uncommitted: ${describeUncommitted(facts.dirty)}`)]),
      ...(environment === undefined ? [] : [show(`${environment.branch} in ${tilde(environment.path, view)}`)]),
      ...(item?.pullRequest === undefined ? [] : [show(item.pullRequest)]),
    ],
  }
}

const stateOf = ({ agent, item, landing, needs }: WatchRow): Pick<Row, 'agentState' | 'style'> => {
  if (agent !== undefined) return { agentState: agentStateWord(agent), style: agentStateStyles[agent.state] }
  if (item === undefined) return { agentState: needs[0]?.kind === 'paused' ? 'paused' : 'blocked', style: 'red' }
  if (item.state === 'parked') return { agentState: 'parked', style: 'red' }
  return { agentState: landing?.state ?? stateWord(item.state), style: 'cyan' }
}

/** What isn't known is never shown as clean. */
const treeCells = ({ environment, facts }: WatchRow): Pick<Row, 'dirty' | 'ahead'> => {
  if (environment === undefined) return { dirty: '', ahead: '' }
  if (environment.status !== 'active') return { dirty: environment.status, ahead: '' }
  if (facts === undefined) return { dirty: '…', ahead: '…' }
  const { dirty, ahead } = facts
  return {
    dirty: dirty === undefined ? '?' : isClean(dirty) ? 'clean' : dirtyWord(dirty),
    ahead: ahead === undefined ? '?' : String(ahead),
  }
}

const dirtyWord = (dirty: NonNullable<NonNullable<WatchRow['facts']>['dirty']>): string => {
  const files = dirty.changed + dirty.untracked + dirty.hidden + dirty.submodules
  return files === 0 ? 'yes' : counted(files, 'file')
}

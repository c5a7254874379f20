import type { FormulaRun } from '../../domain/fleet/formula.ts'
import { type ItemHistoryEntry, sourceLabel } from '../../domain/fleet/item.ts'
import { type ItemDetails, itemDetails } from '../../fleet/items/details.ts'
import { type Call, command } from '../command.ts'
import { describeChange, describeParkReason, historyJson, itemJson, stateWord } from '../views/items.ts'
import { ago, facts, printable, tilde, type View } from '../views/view.ts'
import { itemOf } from './scope.ts'

type Shown = {
  readonly seen: ItemDetails
  readonly history: readonly ItemHistoryEntry[]
  /** What its last agent has finished it with. */
  readonly result: Pick<FormulaRun, 'branch' | 'sha'> | undefined
}

const run = async (call: Call): Promise<Shown> => {
  const workplace = await call.open()
  const item = await itemOf(call, workplace)
  const { context: isolation } = workplace
  const [seen] = await itemDetails({ isolation }, [item])
  const history = await isolation.store.items.history(item.id)
  const finished = await isolation.store.formulaRuns.latestOfItem(item.id)
  return {
    seen: seen ?? { item, codebase: '', ready: false, agent: undefined, environment: undefined },
    history,
    result: finished?.state === 'done' && finished.sha !== undefined ? finished : undefined,
  }
}

const toText = (
  { seen: { item, codebase, ready, agent, environment }, history, result }: Shown,
  view: View,
): string => {
  const { state, parked, pullRequest, after, body } = item
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['state', state === 'open' && ready ? 'open, ready' : stateWord(state)],
    ['parked', parked && describeParkReason(parked)],
    ['repository', codebase],
    ['priority', String(item.priority)],
    ['after', after.length === 0 ? undefined : after.join(', ')],
    ['agent', agent && `${agent.name} (${agent.state})`],
    ['branch', environment?.branch],
    ['worktree', environment && view.chat !== true ? tilde(environment.path, view) : undefined],
    ['result', result && `${result.branch} at ${result.sha?.slice(0, 7)}`],
    ['pull request', pullRequest],
    ['source', item.source && sourceLabel(item.source)],
    ['added by', item.createdBy],
  ]
  return [
    `${view.paint('bold', `Item ${item.id}`)}: ${printable(item.title)}`,
    facts(
      rows.flatMap(([label, value]) => (value === undefined ? [] : [[label, value] as const])),
      view,
    ),
    ...(body.trim() === '' ? [] : ['', printable(body.trimEnd())]),
    '',
    ...history.map(
      ({ at, by, change }) =>
        `${view.chat === true ? '- ' : '  '}${printable(`${ago(at, view.now)}  ${describeChange(change)}  (${by})`)}`,
    ),
  ].join('\n')
}

export const itemShow = command<Shown>({
  run,
  toText,
  toJson: ({ seen, history, result }) => ({
    ...itemJson(seen),
    result: result === undefined ? null : { branch: result.branch, sha: result.sha },
    history: history.map(historyJson),
  }),
})

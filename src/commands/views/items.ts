import type {
  Item,
  ItemChange,
  ItemHistoryEntry,
  ItemSource,
  ItemState,
  ParkReason,
  SourceKind,
  UnhookReason,
} from '../../domain/fleet/item.ts'
import type { FormulaRun } from '../../domain/fleet/formula.ts'
import type { IsolatedEnvironment } from '../../domain/environment.ts'
import { counted } from '../../domain/text/words.ts'
import type { ItemDetails } from '../../fleet/items/details.ts'
import { describeSentBack } from './landings.ts'
import { describeBranchOutcome } from './merged.ts'
import type { Cell, Style } from './view.ts'

/** As documented for programs: times are milliseconds since 1970. */
export const itemJson = ({ item, codebase, ready, agent, environment }: ItemDetails) => ({
  id: item.id,
  codebase,
  title: item.title,
  body: item.body,
  priority: item.priority,
  state: item.state,
  after: item.after,
  ready,
  agent: agent?.name ?? null,
  environment: environment === undefined ? null : placeJson(environment),
  source: item.source === undefined ? null : sourceJson(item.source),
  pullRequest: item.pullRequest ?? null,
  parked: item.parked === undefined ? null : { ...item.parked, message: describeParkReason(item.parked) },
  createdBy: item.createdBy,
  createdAt: item.createdAt,
  updatedAt: item.updatedAt,
})

/** Without the snapshot, which only the next import needs. */
export const sourceJson = ({ seen: _seen, ...source }: ItemSource) => source

const sourceName = (kind: SourceKind): string => sourceNames[kind]

const sourceNames: Readonly<Record<SourceKind, string>> = { github: 'GitHub', beads: 'beads' }

const listedIds = (ids: readonly string[]): string =>
  ids.length > 3 ? `${ids.slice(0, 3).join(', ')} and ${ids.length - 3} more` : ids.join(', ')

export const placeJson = ({ id, path, branch }: IsolatedEnvironment) => ({ id, path, branch })

export const historyJson = ({ at, by, change }: ItemHistoryEntry) => ({
  at,
  by,
  change: { ...change, message: describeChange(change) },
})

const styles: Readonly<Record<ItemState, Style>> = {
  open: 'cyan',
  hooked: 'green',
  in_review: 'yellow',
  parked: 'red',
  landed: 'dim',
  closed: 'dim',
}

export const stateCell = ({ state }: Pick<Item, 'state'>): Cell => ({ text: stateWord(state), style: styles[state] })

/** `in_review` for programs, `in review` for people. */
export const stateWord = (state: ItemState): string => state.replace('_', ' ')

export const describeChange = (change: ItemChange): string => {
  switch (change.kind) {
    case 'created':
      return 'created'
    case 'recovered':
      return 'recovered from its worktree, after the database was lost'
    case 'imported':
      return `imported from ${sourceName(change.from)}`
    case 'edited':
      return `changed its ${change.fields.join(', ')}${change.from === undefined ? '' : ` to match ${sourceName(change.from)}`}`
    case 'hooked':
      return `${change.agent} started to work on it`
    case 'unhooked':
      return `${change.agent === '' ? 'its agent' : change.agent} ${describeUnhook(change.why)}; ${stateWord(change.to)}`
    case 'restarted':
      return change.why === 'crashed' ? `${change.agent} crashed and was started again` : `${change.agent} continued`
    case 'parked':
      return `parked: ${describeParkReason(change.reason)}`
    case 'state':
      return `${stateWord(change.from)} → ${stateWord(change.to)}`
    case 'pull-request':
      return `opened ${change.url}`
    case 'sent-back':
      return describeSentBack(change)
  }
}

export const describeUnhook = (why: UnhookReason): string => {
  switch (why) {
    case 'done':
      return 'finished it'
    case 'discarded':
      return 'gave it up'
    case 'not-started':
      return "couldn't be started"
    case 'crashed':
      return 'crashed'
    case 'gone':
      return 'is gone, with its worktree'
    case 'stopped':
      return 'was stopped'
    case 'closed':
      return 'was stopped, because the item was closed'
  }
}

/** A clause without a full stop. */
export const describeParkReason = (reason: ParkReason): string => {
  switch (reason.kind) {
    case 'asked':
      return reason.note ?? 'it was parked by hand'
    case 'crashed':
      return `its agent crashed ${counted(reason.restarts + 1, 'time')}, and its work is still in its worktree`
    case 'worktree-missing':
      return `its worktree is missing (unmounted?): ${reason.path}`
    case 'other-branch':
      return `its agent crashed, and its worktree is on ${reason.head ?? 'no branch'} instead of ${reason.branch}`
    case 'formula-failed':
      return `the step \`${reason.step}\` failed: ${reason.message}`
    case 'gate-failed':
      return `\`${reason.command}\` failed ${counted(reason.attempts, 'time')} when it was landed`
    case 'conflict':
      return `it conflicts with the base branch, after ${counted(reason.attempts, 'attempt')}`
    case 'pull-request-closed':
      return `its pull request was closed without merging: ${reason.url}`
    case 'status-elsewhere':
      return `${reason.status.replaceAll('_', ' ')} in ${sourceName(reason.source)}`
    case 'waits-elsewhere':
      return `it waits for ${listedIds(reason.ids)} in ${sourceName(reason.source)}`
  }
}

/** What a finished formula didn't push, and left behind: "not pushed: …", "branch kept: 2 commits not on main". */
export const resultNotes = ({ steps }: Pick<FormulaRun, 'steps'>): readonly string[] =>
  steps.flatMap(({ step, state, detail, branch }) => [
    ...(step === 'push' && state === 'skipped' ? [`not pushed: ${detail ?? ''}`] : []),
    ...(branch === undefined ? [] : [describeBranchOutcome(branch)]),
  ])

export const resultJson = ({ branch, sha, steps }: Pick<FormulaRun, 'branch' | 'sha' | 'steps'>) => ({
  branch,
  sha,
  pushed: steps.some(({ step, state }) => step === 'push' && state === 'done'),
})

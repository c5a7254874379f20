import { counted } from '../../domain/text/words.ts'
import type { Action, Prompt, Row, State, Target } from './state.ts'
import { emptyInput } from './input-line.ts'
import { selectedRow } from './state.ts'

/** What a key that acts on a row leads to: a question first, something at once, or the reason why not. */
export type Asked =
  | { readonly prompt: Prompt }
  | { readonly do: 'attach' | 'peek'; readonly agent: Target }
  | { readonly why: string }

type Ask = (row: Row, state: State) => Asked

const confirm = (action: Action, ...question: readonly string[]): Asked => ({
  prompt: { kind: 'confirm', question, action, undoes: undefined },
})

const nobody = ({ item }: Row): Asked => ({
  why: item === undefined ? 'No agent is selected.' : `No agent is working on item ${item.id}.`,
})

const attach: Ask = (row) => (row.agent === undefined ? nobody(row) : { do: 'attach', agent: row.agent })

const peek: Ask = (row) => (row.agent === undefined ? nobody(row) : { do: 'peek', agent: row.agent })

const nudge: Ask = (row) => {
  const { agent, isRunning } = row
  if (agent === undefined) return nobody(row)
  if (!isRunning) return { why: `${agent.name} isn't running. Press r to start it again.` }
  return { prompt: { kind: 'nudge', agent, input: emptyInput } }
}

const stop: Ask = (row) => {
  const { agent, item, isRunning, agentState } = row
  if (agent === undefined) return nobody(row)
  if (!isRunning) return { why: `${agent.name} isn't running.` }
  const kept = item === undefined ? 'its worktree' : `its worktree and item ${item.id}`
  return confirm(
    { kind: 'stop', agent },
    `Stop ${agent.name}? Its program gets a minute to exit by itself, then it is killed.`,
    agentState === 'finishing'
      ? 'It is finishing its item, and that is completed.'
      : `It keeps ${kept}, with everything uncommitted. Undo with u.`,
  )
}

const resume: Ask = (row, { picture }) => {
  const { agent, item, isRunning } = row
  if (row.isPausedFleet)
    return confirm({ kind: 'up' }, 'Bring the fleet up again? All agents that have an item are started.')
  const others = picture?.stopped === undefined ? [] : ['This also brings the fleet up: pools may start agents again.']
  if (item?.isParked === true && agent !== undefined)
    return confirm(
      { kind: 'continue', item: item.id, agent },
      `Let ${agent.name} continue with item ${item.id}, which is parked?`,
    )
  if (item?.isParked === true)
    return confirm(
      { kind: 'reopen', item: item.id, agent: undefined },
      `Put item ${item.id} back into the queue? Any agent may take it then.`,
    )
  if (agent === undefined)
    return { why: item === undefined ? 'No agent is selected.' : `Item ${item.id} waits for its merge.` }
  if (isRunning && row.need === '') return { why: `${agent.name} is running.` }
  return confirm({ kind: 'start', agent }, `Start ${agent.name} again? It continues in its own worktree.`, ...others)
}

const land: Ask = ({ agent, item, branch }) => {
  if (item === undefined)
    return { why: agent === undefined ? 'No item is selected.' : `${agent.name} has no item to land.` }
  return confirm(
    { kind: 'land', item: item.id, agent },
    `Queue item ${item.id} (${branch === '' ? 'its branch' : branch}) for landing?`,
    'It is tested on the newest base branch, and pushed to it if all gates pass.',
  )
}

const keys: Readonly<Record<string, Ask>> = { a: attach, p: peek, n: nudge, s: stop, r: resume, l: land }

/** Undefined if the key isn't one of these. */
export const askedBy = (text: string, state: State, row: Row | undefined = selectedRow(state)): Asked | undefined => {
  const ask = keys[text]
  if (ask === undefined) return undefined
  return row === undefined ? { why: 'No agent is selected.' } : ask(row, state)
}

export const askUndo = ({ undo, running }: State): Asked => {
  const last = undo.at(-1)
  if (last !== undefined)
    return { prompt: { kind: 'confirm', question: [`Undo: ${last.question}`], action: last.action, undoes: last } }
  const wait = running.length === 0 ? '' : ` ${counted(running.length, 'action')} still running.`
  return { why: `Nothing to undo: only stopping, starting and landing in this view can be undone.${wait}` }
}

/** What is under way, as in "stopping alder". */
export const describeAction = (action: Action): string => {
  switch (action.kind) {
    case 'stop':
      return `stopping ${action.agent.name}`
    case 'start':
      return `starting ${action.agent.name}`
    case 'nudge':
      return `sending a message to ${action.agent.name}`
    case 'continue':
      return `continuing item ${action.item}`
    case 'reopen':
      return `reopening item ${action.item}`
    case 'land':
      return `queueing item ${action.item}`
    case 'up':
      return 'starting the fleet'
    case 'withdraw':
      return `withdrawing item ${action.item} from the landing queue`
    case 'restore':
      return `restoring ${action.branch}`
  }
}

/** Two actions on the same agent or item at once would hinder each other. */
export const subjectOf = (action: Action): string => {
  if ('agent' in action && action.agent !== undefined) return action.agent.id
  return 'item' in action ? `item ${action.item}` : 'environment' in action ? action.environment : 'the fleet'
}

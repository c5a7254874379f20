import type { DoneRefusal } from '../../domain/fleet/done-refusal.ts'
import type { FleetAgent, FleetAgentState } from '../../domain/fleet/agent.ts'
import { coppice, type Remedy, remedy, shell } from '../../domain/remedy.ts'
import { shellWord } from '../../domain/text/shell-word.ts'
import type { AgentDetails, NeedsYou } from '../../fleet/status.ts'
import { explainDone } from './fleet-refusals.ts'
import { explainBlock } from './landings.ts'
import { describeParkReason, placeJson } from './items.ts'
import { ago, asProgram, type Cell, type Style } from './view.ts'

/** As documented for programs: times are milliseconds since 1970. */
export const agentJson = ({ agent, codebase, environment }: Omit<AgentDetails, 'item'>) => ({
  name: agent.name,
  kind: agent.kind,
  pool: agent.pool ?? null,
  codebase,
  program: agent.program,
  state: agent.state,
  item: agent.itemId ?? null,
  spawn: agent.spawn,
  host: agent.host,
  session: sessionJson(agent),
  environment: environment === undefined ? null : placeJson(environment),
  restarts: agent.restarts,
  lastSignAt: agent.lastSignAt,
})

const sessionJson = ({ session }: FleetAgent) =>
  session === undefined
    ? null
    : { kind: session.kind, target: session.target, pid: session.root.pid, startedAt: session.startedAt }

export const agentStateStyles: Readonly<Record<FleetAgentState, Style>> = {
  spawning: 'yellow',
  working: 'green',
  finishing: 'cyan',
  stuck: 'red',
  draining: 'yellow',
  stopped: 'dim',
  crashed: 'red',
  gone: 'dim',
}

/** A program that runs without an item waits for one. */
export const agentStateWord = ({ itemId, state }: FleetAgent): string =>
  itemId === undefined && state === 'working' ? 'waiting' : state

export const agentCells = (
  { agent, item, environment, codebase }: AgentDetails,
  { now, named }: { readonly now: number; readonly named: boolean },
): readonly Cell[] => [
  { text: agent.name, style: 'bold' },
  {
    text: agentStateWord(agent),
    style: agentStateStyles[agent.state],
  },
  { text: agent.pool ?? 'crew', style: 'dim' },
  { text: agent.itemId === undefined ? '' : `${agent.itemId}  ${item?.title ?? ''}` },
  { text: environment?.branch ?? '', style: 'dim' },
  { text: ago(agent.lastSignAt, now), style: 'dim' },
  { text: named ? codebase : '', style: 'dim' },
]

export const agentHeadings = ['AGENT', 'STATE', 'POOL', 'ITEM', 'BRANCH', 'LAST SIGN', 'REPOSITORY'] as const

export const needsYouJson = (need: NeedsYou) => ({
  kind: need.kind,
  item: 'item' in need ? (typeof need.item === 'object' ? need.item.id : (need.item ?? null)) : null,
  agent: 'agent' in need ? (need.agent ?? null) : null,
  message: describeNeed(need),
})

/** A clause that names its subject, without a full stop. */
export const describeNeed = (need: NeedsYou): string => {
  switch (need.kind) {
    case 'paused':
      return `the fleet is paused: ${need.why}`
    case 'parked':
      return `item ${need.item.id} (${need.item.title}) is parked: ${need.reason === undefined ? 'reason unknown' : describeParkReason(need.reason)}`
    case 'no-session':
      return need.item === undefined
        ? `the session of ${need.agent} has ended`
        : `the session of ${need.agent} has ended, and item ${need.item} isn't finished`
    case 'refused':
      return `item ${need.item} can't be finished by ${need.agent}: ${explainDone(need.why, asProgram).what}`
    case 'landing-blocked':
      return `nothing can land in ${need.codebase}: ${explainBlock(need.why, need.codebase).what}`
    case 'stuck':
      return `no sign of life from ${need.agent} for a while`
  }
}

/** The same without its subject, for where that is shown already. */
export const describeNeedOfRow = (need: NeedsYou): string => {
  switch (need.kind) {
    case 'paused':
      return need.why
    case 'parked':
      return need.reason === undefined ? 'parked' : describeParkReason(need.reason)
    case 'no-session':
      return 'its session has ended'
    case 'refused':
      return `can't finish: ${explainDone(need.why, asProgram).what}`
    case 'landing-blocked':
      return explainBlock(need.why, need.codebase).what
    case 'stuck':
      return 'no sign of life'
  }
}

/** What a person can do about it. */
export const needRemedies = (need: NeedsYou): readonly Remedy[] => {
  switch (need.kind) {
    case 'paused':
      return [remedy`continue: ${coppice('fleet up')}`]
    case 'parked': {
      const {
        agent,
        item: { id: itemId },
        reason,
        running,
      } = need
      if (agent === undefined) {
        const again = remedy`try to land it again: ${coppice(`land ${itemId}`)}`
        const reopen = remedy`put it back into the queue: ${coppice(`item reopen ${itemId}`)}`
        return reason?.kind === 'conflict' || reason?.kind === 'gate-failed' ? [reopen, again] : [reopen]
      }
      const goOn = remedy`let ${agent} continue: ${coppice(`sling ${itemId}`)}`
      return reason?.kind === 'asked' && reason.note !== undefined ? answers(agent, goOn, running) : [goOn]
    }
    case 'no-session':
      return [remedy`start it again: ${coppice(`fleet up ${shellWord(need.agent)}`)}`]
    case 'refused':
      return [
        ...personRemedies(need.why),
        remedy`then let it try again: ${coppice(`nudge ${shellWord(need.agent)} "run coppice done again"`)}`,
      ]
    case 'landing-blocked':
      return explainBlock(need.why, need.codebase).todo
    case 'stuck':
      return [remedy`see what it does: ${coppice(`peek ${shellWord(need.agent)}`)}`]
  }
}

/** Only a running agent can be sent an answer. */
const answers = (agent: string, goOn: Remedy, running: boolean): readonly Remedy[] => {
  const nudge = coppice(`nudge ${shellWord(agent)} <text>`)
  return running ? [remedy`answer: ${nudge}`, goOn] : [goOn, remedy`then answer: ${nudge}`]
}

const personRemedies = (why: DoneRefusal): readonly Remedy[] => {
  if (why.kind === 'not-approved')
    return [remedy`approve them: ${coppice(`codebase trust ${shellWord(why.codebase)}`)}`]
  if (why.kind !== 'not-published') return []
  switch (why.why.kind) {
    case 'remote-unconfirmed':
      return [remedy`if a person added it, confirm it: ${coppice(`codebase add ${shellWord(why.why.repository)}`)}`]
    case 'remote-ambiguous':
      return [remedy`rename one, in the repository: ${shell('git remote rename <name> origin')}`]
    case 'remote-changed':
      return [remedy`if a person changed it, confirm it, in the repository: ${coppice('status')}`]
    default:
      return []
  }
}

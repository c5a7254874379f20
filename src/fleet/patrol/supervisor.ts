import type { FleetAgent } from '../../domain/fleet/agent.ts'
import type { ParkReason } from '../../domain/fleet/item.ts'
import { toAppError } from '../../domain/errors.ts'
import { counted } from '../../domain/text/words.ts'
import type { FleetContext } from '../context.ts'
import { nudgeAgent } from '../peek-and-nudge.ts'
import type { RowContext } from './row.ts'
import type { Round, Seen } from './seen.ts'

/** What has to be decided by somebody. */
export type Problem = ParkReason | { readonly kind: 'stuck'; readonly since: number }

/** The note that the supervisor was told what a row found. */
export const supervisorNote = (row: string): string => `supervisor:${row}`

export const isSupervisorNote = (what: string): boolean => what.startsWith(supervisorNote(''))

/** The configured crew member, if its program is running. */
export const supervisorOf = (
  { isolation: { settings } }: Pick<FleetContext, 'isolation'>,
  agents: readonly Seen[],
): Seen | undefined =>
  agents.find(
    ({ agent, session, process }) =>
      agent.kind === 'crew' &&
      agent.name === settings.supervisor &&
      agent.state === 'working' &&
      session === 'yes' &&
      process === 'yes',
  )

export type Turn = 'person' | 'waiting' | { readonly supervisor: string }

/**
 * Who has to deal with a problem. The supervisor is told first, and has some time; then it is a person's turn. Without a
 * supervisor, or if it is the supervisor's own problem, a person's at once.
 */
export const whoseTurn = async (
  context: RowContext,
  { agent }: Seen,
  { noteOf, now }: Round,
  { row, problem }: { readonly row: string; readonly problem: Problem },
): Promise<Turn> => {
  const { isolation, supervisor } = context
  const { store, host, settings, clock, log, failpoint } = isolation
  if (supervisor === undefined || supervisor.agent.id === agent.id) return 'person'
  const what = supervisorNote(row)
  const told = noteOf(agent, what)
  const patienceMs = settings.supervisorMinutes * 60_000
  if (told?.reportedAt !== undefined) return now - told.reportedAt < patienceMs ? 'waiting' : 'person'
  const note = { subject: agent.id, what, life: agent.spawn }
  await store.patrolNotes.see(host, { ...note, at: clock() })
  // Recorded first: told twice would be worse than told never, since a person is told then.
  if (!(await store.patrolNotes.report(host, note, clock()))) return 'waiting'
  await failpoint('supervisor.noted')
  try {
    const { name } = supervisor.agent
    await nudgeAgent(context, name, supervisorText(agent, problem, { now, minutes: settings.supervisorMinutes }))
    return { supervisor: name }
  } catch (error) {
    log.warn('the supervisor could not be told', { agent: agent.name, error: toAppError(error).message })
    return 'person'
  }
}

/** With only what the supervisor may do about it. Items are named by number: their titles come from anybody. */
export const supervisorText = (
  { name, itemId }: Pick<FleetAgent, 'name' | 'itemId'>,
  problem: Problem,
  { now, minutes }: { readonly now: number; readonly minutes: number },
): string => {
  const item = itemId ?? 0
  const runs = problem.kind === 'stuck'
  return [
    `Patrol: ${whatHappened(name, item, problem, now)}`,
    `You are the supervisor: please deal with it. If it is still so in ${counted(minutes, 'minute')}, a person is told.`,
    'You may run these commands:',
    ...(runs ? [`coppice nudge ${name} "<text>": send it a message.`] : []),
    `coppice item park ${item} "<question>": leave it to a person, with your question.`,
    `coppice item reopen ${item}: give the item to another agent, if ${name} is dead and has changed nothing.`,
    `coppice land ${item}: land its branch, if the work is finished.`,
  ].join(' ')
}

const whatHappened = (name: string, item: number, problem: Problem, now: number): string => {
  switch (problem.kind) {
    case 'stuck':
      return `${name}, who works on item ${item}, has shown no sign of life for ${counted(Math.round((now - problem.since) / 60_000), 'minute')}, and didn't react to a message.`
    case 'crashed':
      return `${name}, who worked on item ${item}, has crashed ${counted(problem.restarts + 1, 'time')} and isn't started again.`
    case 'worktree-missing':
      return `the worktree of ${name}, who works on item ${item}, is missing: ${problem.path}.`
    case 'other-branch':
      return `${name}, who worked on item ${item}, has crashed and isn't started again, because its worktree isn't on its branch ${problem.branch}.`
    default:
      return `${name}, who works on item ${item}, needs attention.`
  }
}

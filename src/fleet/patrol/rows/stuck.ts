import { toAppError } from '../../../domain/errors.ts'
import { newestChange } from '../../../process/files/newest-change.ts'
import { nudgeAgent } from '../../peek-and-nudge.ts'
import { agentOutside } from '../outside.ts'
import { about, type AgentRow, type Finding, type RowContext } from '../row.ts'
import { isHooked, type Round, type Seen, shouldRun } from '../seen.ts'
import { CPU, STUCK } from '../signs.ts'
import { whoseTurn } from '../supervisor.ts'

const name = STUCK

/**
 * No output, no CPU time and no change in the worktree for long, though it has an item. It is asked once, then the
 * supervisor is told, then a person. Nothing is ended: it may only be waiting.
 */
export const stuck: AgentRow = {
  name,
  applies: (seen, { now, stuckMs, noteOf }) =>
    seen.agent.state === 'working' &&
    shouldRun(seen) &&
    isHooked(seen) &&
    seen.session === 'yes' &&
    seen.process === 'yes' &&
    seen.program !== 'no' &&
    now - seen.lastSignAt >= stuckMs &&
    // Whether it uses CPU time is known from the second look.
    noteOf(seen.agent, CPU) !== undefined,
  act: async (context, seen, round) => {
    const { store, settings } = context.isolation
    const { agent } = seen
    const nudgedAt = round.noteOf(agent, STUCK)?.reportedAt
    if (nudgedAt !== undefined && round.now - nudgedAt < settings.supervisorMinutes * 60_000) return undefined
    const signAt = await slowSign(context, seen, round)
    if (signAt === 'unsettled') return undefined
    if (signAt !== undefined) {
      await store.fleetAgents.update(agent.id, { lastSignAt: signAt })
      return undefined
    }
    return nudgedAt === undefined ? nudge(context, seen) : tell(context, seen, round)
  },
}

/** Signs that take long to ask for: a change in the worktree, and CPU time of what has left the session. */
const slowSign = async (
  { isolation }: RowContext,
  { agent, environment, lastSignAt }: Seen,
  { now, noteOf }: Round,
): Promise<number | 'unsettled' | undefined> => {
  const changedAt = environment && (await newestChange(environment.path, { now }))
  if (changedAt !== undefined && changedAt > lastSignAt) return Math.floor(changedAt)
  const outside = await agentOutside(isolation, agent, noteOf)
  return outside === 'busy' ? now : outside === 'unsettled' ? outside : undefined
}

/** Recorded first, so that it is asked once, whatever happens to us or to the message. */
const nudge = async (context: RowContext, { agent, item, lastSignAt }: Seen): Promise<Finding | undefined> => {
  const { store, host, clock, log, failpoint } = context.isolation
  const note = { subject: agent.id, what: STUCK, life: agent.spawn }
  const at = clock()
  await store.patrolNotes.see(host, { ...note, at, data: { nudgedAt: at } })
  if (!(await store.patrolNotes.report(host, note, at))) return undefined
  // What it computes to show the message is no sign of life, so nothing is compared with what was before.
  await store.patrolNotes.see(host, { ...note, what: CPU, at, data: {} })
  await failpoint('stuck.noted')
  try {
    await nudgeAgent(context, agent.name, nudgeText(item?.id ?? 0))
  } catch (error) {
    log.warn('a stuck agent could not be sent a message', { agent: agent.name, error: toAppError(error).message })
  }
  return { ...about(agent, name), did: 'nudged', since: lastSignAt }
}

const nudgeText = (item: number): string =>
  `You haven't done anything for a while. If you are still working on item ${item}, continue. If it is finished and committed, run \`coppice done\`. If you need a person, run \`coppice item park ${item} "<question>"\`.`

const tell = async (context: RowContext, seen: Seen, round: Round): Promise<Finding | undefined> => {
  const { agent, lastSignAt: since } = seen
  const turn = await whoseTurn(context, seen, round, { row: name, problem: { kind: 'stuck', since } })
  if (turn === 'waiting') return undefined
  if (turn !== 'person') return { ...about(agent, name), did: 'told', supervisor: turn.supervisor }
  const isOurs = await context.isolation.store.transaction(async (inside) => {
    if ((await inside.fleetAgents.get(agent.id))?.spawn !== agent.spawn) return false
    if (!(await inside.fleetAgents.move(agent.id, 'working', 'stuck'))) return false
    await context.notify(inside, { kind: 'stuck', agent: agent.name, itemId: agent.itemId, since })
    return true
  })
  await context.isolation.failpoint('stuck.told')
  return isOurs ? { ...about(agent, name), did: 'stuck', since } : undefined
}

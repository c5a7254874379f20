import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import type { FleetAgent } from '../../domain/fleet/agent.ts'
import type { Item } from '../../domain/fleet/item.ts'

/** The first prompt of a session: who and where the agent is, and what to do. `coppice prime` gives the rest. */
export const beaconFor = (
  { name, kind, pool, restarts }: FleetAgent,
  item: Item | undefined,
  codebase: Pick<Codebase, 'name'>,
  { path, branch }: Pick<IsolatedEnvironment, 'path' | 'branch'>,
): string => {
  const who = kind === 'crew' ? `${name}, a member of the crew` : `${name}, an agent of the pool ${pool ?? ''}`
  const where = `You work on ${codebase.name} in ${path}, on the branch ${branch}.`
  if (item === undefined) {
    return `You are ${who}. ${where} You have no item yet. Wait: one will be sent to you.`
  }
  const again = restarts > 0 ? ' Your session was restarted, so part of the work may already be done.' : ''
  return (
    `You are ${who}. ${where} Your item is ${item.id}: ${item.title}.${again} ` +
    'Run `coppice prime` for everything about it, then do the work without asking for permission. ' +
    'When it is finished and committed, run `coppice done`.'
  )
}

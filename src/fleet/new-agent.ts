import type { FleetAgent } from '../domain/fleet/agent.ts'
import type { FleetContext } from './context.ts'

type Given = Pick<FleetAgent, 'name' | 'kind' | 'pool' | 'codebaseId' | 'program'> &
  Partial<Pick<FleetAgent, 'itemId' | 'environmentId'>>

/** The row of an agent that we are about to start. */
export const newAgent = (
  { isolation: { clock, ids, host, self } }: Pick<FleetContext, 'isolation'>,
  { itemId, environmentId, ...given }: Given,
): FleetAgent => {
  const now = clock()
  return {
    ...given,
    id: ids(),
    host,
    state: 'spawning',
    itemId,
    environmentId,
    spawn: ids(),
    session: undefined,
    restarts: 0,
    lastSignAt: now,
    workedAt: undefined,
    drainingSince: undefined,
    holder: self,
    createdAt: now,
    endedAt: undefined,
  }
}

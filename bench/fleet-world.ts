import { fileURLToPath } from 'node:url'
import type { Settings } from '../src/domain/config/settings.ts'
import type { Codebase } from '../src/domain/environment.ts'
import type { FleetContext } from '../src/fleet/context.ts'
import { endSession } from '../src/fleet/end-session.ts'
import { fleetIn, testPools } from '../test/helpers/fleet.ts'
import type { World } from './stage.ts'

/** A program that waits for what it is told, as an agent does. */
export const workerCommand = `sh ${fileURLToPath(new URL('../test/helpers/fleet-worker.sh', import.meta.url))}`

export const fleetSettings: Partial<Settings> = {
  fleetSession: 'tmux',
  maxAgents: 1_000,
  pools: testPools([{ max: 1_000, command: workerCommand }]),
}

export const fleetOf = ({ context }: Pick<World, 'context'>, env: Readonly<Record<string, string>>): FleetContext =>
  fleetIn(context, env)

export const addItems = async (
  { isolation: { store, clock } }: FleetContext,
  { id: codebaseId }: Codebase,
  count: number,
): Promise<readonly number[]> => {
  const ids: number[] = []
  for (let i = 0; i < count; i += 1) {
    const item = await store.items.insert({
      codebaseId,
      title: 'Fix login',
      body: '',
      priority: 2,
      after: [],
      source: undefined,
      createdBy: 'bench',
      createdAt: clock(),
    })
    if (item !== undefined) ids.push(item.id)
  }
  return ids
}

export const endAgents = async (fleet: FleetContext): Promise<void> => {
  for (const agent of await fleet.isolation.store.fleetAgents.live()) await endSession(fleet, agent, { graceMs: 0 })
}

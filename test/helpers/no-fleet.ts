import type { FleetContext } from '../../src/fleet/context.ts'

/** For what has nothing to do with the fleet. */
export const noFleet = async (): Promise<FleetContext> => {
  throw new Error('there is no fleet here')
}

import { AppError } from '../../domain/errors.ts'
import type { ParkReason } from '../../domain/fleet/item.ts'
import type { FleetContext } from '../context.ts'

export type WithdrawRequest = {
  readonly landing: number
  /** Set if its item was parked before it was queued, and is to be parked again. */
  readonly parked: ParkReason | undefined
  readonly by: string
}

/** Takes a landing out of the queue again, as if it had never been queued. Throws if it isn't waiting any more. */
export const withdrawLanding = async (
  { isolation: { store, clock } }: Pick<FleetContext, 'isolation'>,
  { landing: id, parked, by }: WithdrawRequest,
): Promise<void> => {
  const at = clock()
  await store.transaction(async (inside) => {
    const landing = await inside.landings.get(id)
    const isOurs = landing !== undefined && (await inside.landings.move(id, 'queued', 'superseded', at))
    if (!isOurs) {
      throw new AppError('refused', `landing ${id} can't be withdrawn: it is ${landing?.state ?? 'gone'}`)
    }
    if (parked === undefined || landing.itemId === undefined) return
    const change = { kind: 'parked', from: 'in_review', reason: parked } as const
    await inside.items.move(landing.itemId, { from: 'in_review', to: 'parked', change, by, at, patch: { parked } })
  })
}

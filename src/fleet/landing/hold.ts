import type { LandingQueue } from '../../domain/fleet/landing.ts'
import type { Codebase } from '../../domain/environment.ts'
import { isSame } from '../../process/tree.ts'
import type { FleetContext } from '../context.ts'
import { isHeld } from '../formulas/run-formula.ts'

/** Only one process works on a codebase's queue; any process takes over from a dead one. */
export const withQueue = async <T>(
  context: FleetContext,
  codebase: Codebase,
  work: (queue: LandingQueue) => Promise<T>,
): Promise<T | { readonly outcome: 'busy'; readonly holder: LandingQueue['holder'] }> => {
  const { store, host, self } = context.isolation
  const key = `landing:${codebase.id}`
  const holder = { host, process: self }
  // Locks out other callers in this process; the claim below locks out other processes.
  if (context.executing.has(key)) return { outcome: 'busy', holder }
  context.executing.add(key)
  try {
    const queue = await store.landings.queue(codebase.id)
    const isOurs = queue.holder?.host === host && isSame(queue.holder.process, self)
    if (isHeld(context, queue) && !isOurs) return { outcome: 'busy', holder: queue.holder }
    if (!(await store.landings.claimQueue(codebase.id, queue.holder, holder))) {
      return { outcome: 'busy', holder: (await store.landings.queue(codebase.id)).holder }
    }
    try {
      return await work({ ...queue, holder })
    } finally {
      await store.landings.claimQueue(codebase.id, holder, undefined)
    }
  } finally {
    context.executing.delete(key)
  }
}

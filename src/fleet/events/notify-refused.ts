import type { DoneRefusal } from '../../domain/fleet/done-refusal.ts'
import type { Store } from '../../store/store.ts'
import type { FleetContext } from '../context.ts'
import type { StepSubject } from '../formulas/step.ts'

/** Once, however often the agent tries again: until something else happens to the item, or the reason changes. */
export const notifyRefused = async (
  { notify, redact }: Pick<FleetContext, 'notify' | 'redact'>,
  store: Store,
  { item, agent }: Pick<StepSubject, 'item' | 'agent'>,
  why: DoneRefusal | undefined,
): Promise<void> => {
  if (item === undefined || why === undefined) return
  const last = (await store.events.latestOfItem(item.id))?.event
  if (last?.kind === 'refused' && reasonOf(last.why) === redact(reasonOf(why))) return
  await notify(store, { kind: 'refused', item, agent: agent.name, why })
}

/** Without the environment, whose time of last activity changes. */
const reasonOf = (why: DoneRefusal): string => JSON.stringify({ ...why, environment: undefined })

import { AppError } from '../../../domain/errors.ts'
import { isSettled } from '../../../domain/fleet/item.ts'
import { hasStep } from '../../../domain/fleet/formula.ts'
import { unhookItem } from '../../items/change.ts'
import type { Step } from '../step.ts'

/** Moves the item to its new state and unhooks it from the agent, in one transaction. */
export const settle: Step = async (context, { run, agent, item }) => ({
  state: 'done',
  record: async (store) => {
    // Read again: the item may have been parked or resumed since this step began.
    const now = item && (await store.items.get(item.id))
    if (now === undefined || (await store.fleetAgents.get(agent.id))?.itemId !== now.id) return
    await store.fleetAgents.update(agent.id, { itemId: undefined })
    if (isSettled(now.state)) return
    const isDiscarded = hasStep(run, 'validate-discard')
    const waits = hasStep(run, 'open-pr') || hasStep(run, 'enqueue')
    const to = isDiscarded ? (run.close ? 'closed' : 'open') : waits ? 'in_review' : 'closed'
    const isUnhooked = await unhookItem(context, store, now, {
      to,
      agent: agent.name,
      why: isDiscarded ? 'discarded' : 'done',
      by: `agent:${agent.name}`,
      // An item in review keeps its worktree until the merge is confirmed.
      withoutEnvironment: to !== 'in_review',
    })
    // Thrown to roll the transaction back. The next process settles the item in its new state.
    if (!isUnhooked) throw new AppError('busy', `item ${now.id} has just been changed`)
  },
})

import type { FormulaRun } from '../../../domain/fleet/formula.ts'
import { unhookItem } from '../../items/change.ts'
import type { Step } from '../step.ts'

/** The item's new state, and the hook, in one transaction. */
export const settle: Step = async (context, { run, agent, item }) => ({
  state: 'done',
  record: async (store) => {
    if (item === undefined || agent.itemId !== item.id) return
    await store.fleetAgents.update(agent.id, { itemId: undefined })
    const isDiscarded = has(run, 'validate-discard')
    const waits = has(run, 'open-pr') || has(run, 'enqueue')
    const to = isDiscarded ? (run.close ? 'closed' : 'open') : waits ? 'in_review' : 'closed'
    await unhookItem(context, store, item, {
      to,
      agent: agent.name,
      why: isDiscarded ? 'discarded' : 'done',
      by: `agent:${agent.name}`,
      // What waits for a merge keeps its worktree until the merge is confirmed.
      withoutEnvironment: to !== 'in_review',
    })
  },
})

const has = ({ steps }: FormulaRun, name: string): boolean => steps.some(({ step }) => step === name)

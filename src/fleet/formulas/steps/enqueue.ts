import { AppError } from '../../../domain/errors.ts'
import type { Step } from '../step.ts'

/** Puts the pushed branch into the landing queue. */
export const enqueue: Step = async ({ isolation: { clock } }, { run, agent, item, codebase, environment }) => {
  const { sha, branch } = run
  if (sha === undefined) throw new AppError('unexpected', 'nothing was pushed, so nothing can land')
  return {
    state: 'done',
    record: async (store) => {
      await store.landings.enqueue({
        codebaseId: codebase.id,
        itemId: item?.id,
        branch,
        sha,
        baseBranch: environment?.baseBranch,
        createdBy: `agent:${agent.name}`,
        createdAt: clock(),
      })
    },
  }
}

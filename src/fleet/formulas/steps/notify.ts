import { hasStep } from '../../../domain/fleet/formula.ts'
import type { Store } from '../../../store/store.ts'
import type { FleetContext } from '../../context.ts'
import type { Step, StepSubject } from '../step.ts'

/** Notifies the conversations that follow the item of its outcome, exactly once. */
export const notify: Step = async (context, subject) => ({
  state: 'done',
  record: (store) => notifyFollowers(context, store, subject),
})

const notifyFollowers = async (
  context: Pick<FleetContext, 'notify'>,
  store: Store,
  { run, item }: StepSubject,
): Promise<void> => {
  if (item === undefined) return
  if (run.pullRequest !== undefined) return context.notify(store, { kind: 'pull-request', item, url: run.pullRequest })
  if (hasStep(run, 'enqueue')) {
    const [landing] = await store.landings.list({
      codebaseId: item.codebaseId,
      states: ['queued', 'testing'],
      limit: 1,
    })
    if (landing?.branch === run.branch) return context.notify(store, { kind: 'queued', item, landing: landing.id })
  }
  if (hasStep(run, 'push') && run.sha !== undefined)
    await context.notify(store, { kind: 'pushed', item, branch: run.branch })
}

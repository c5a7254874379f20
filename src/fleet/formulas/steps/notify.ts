import { hasStep } from '../../../domain/fleet/formula.ts'
import type { Store } from '../../../store/store.ts'
import type { FleetContext } from '../../context.ts'
import type { Step, StepSubject } from '../step.ts'

/** Tells the conversations that follow the item what became of it, exactly once. */
export const notify: Step = async (context, subject) => ({
  state: 'done',
  record: (store) => tellOutcome(context, store, subject),
})

const tellOutcome = async (
  { tell }: Pick<FleetContext, 'tell'>,
  store: Store,
  { run, item }: StepSubject,
): Promise<void> => {
  if (item === undefined) return
  if (run.pullRequest !== undefined) return tell(store, { kind: 'pull-request', item, url: run.pullRequest })
  if (hasStep(run, 'enqueue')) {
    const [landing] = await store.landings.list({
      codebaseId: item.codebaseId,
      states: ['queued', 'testing'],
      limit: 1,
    })
    if (landing?.branch === run.branch) return tell(store, { kind: 'queued', item, landing: landing.id })
  }
  if (hasStep(run, 'push') && run.sha !== undefined) await tell(store, { kind: 'pushed', item, branch: run.branch })
}

import type { Item, ParkReason } from '../../domain/fleet/item.ts'
import { counted } from '../../domain/text/words.ts'
import type { ItemEvent } from '../../fleet/context.ts'

/** `item 7 (Fix login)` */
const named = ({ id, title }: Item): string => `Item ${id} (${title})`

/** For the threads that follow an item. */
export const describeItemEvent = (event: ItemEvent): string => {
  const item = named(event.item)
  switch (event.kind) {
    case 'started':
      return `${item}: ${event.agent} has started to work on it.`
    case 'restarted':
      return `${item}: ${event.agent} continues with it.`
    case 'parked':
      return `${item} needs you: ${describeParkReason(event.reason)}.`
    case 'pull-request':
      return `${item} has a pull request: ${event.url}`
    case 'pushed':
      return `${item} is pushed to the branch \`${event.branch}\`.`
    case 'queued':
      return `${item} is waiting to land (landing ${event.landing}).`
    case 'landed':
      return `${item} has landed.`
    case 'closed':
      return `${item} is closed.`
    case 'reopened':
      return `${item} is open again.`
  }
}

export const describeParkReason = (reason: ParkReason): string => {
  switch (reason.kind) {
    case 'asked':
      return reason.note ?? 'it was parked by hand'
    case 'crashed':
      return `its agent crashed ${counted(reason.restarts + 1, 'time')}, and its work is still in its worktree`
    case 'worktree-missing':
      return `its worktree is missing (unmounted?): ${reason.path}`
    case 'formula-failed':
      return `the step \`${reason.step}\` failed: ${reason.message}`
    case 'gate-failed':
      return `\`${reason.command}\` failed ${counted(reason.attempts, 'time')} when it was landed`
    case 'conflict':
      return `it conflicts with the base branch, after ${counted(reason.attempts, 'attempt')}`
    case 'pull-request-closed':
      return `its pull request was closed without merging: ${reason.url}`
  }
}

import type { ItemEvent, ItemName } from '../../domain/fleet/event.ts'
import { isParkedElsewhere } from '../../domain/fleet/item.ts'
import { withFullStop } from '../../domain/text/words.ts'
import { explainDone } from './fleet-refusals.ts'
import { describeParkReason } from './items.ts'
import { describeLandingProblem } from './landings.ts'
import { asProgram } from './view.ts'

/** `Item 7 (Fix login)` */
const named = ({ id, title }: ItemName): string => `Item ${id} (${title})`

/** For the threads that follow an item. */
export const describeItemEvent = (event: ItemEvent<ItemName>): string => {
  const item = named(event.item)
  switch (event.kind) {
    case 'started':
      return `${item}: ${event.agent} started working on it.`
    case 'restarted':
      return `${item}: ${event.agent} is working on it again.`
    case 'parked':
      return isParkedElsewhere({ parked: event.reason })
        ? withFullStop(`${item} is parked: ${describeParkReason(event.reason)}`)
        : withFullStop(`${item} needs you: ${describeParkReason(event.reason)}`)
    case 'refused':
      return withFullStop(
        `${item} needs you, because ${event.agent} can't finish it: ${explainDone(event.why, asProgram).what}`,
      )
    case 'pull-request':
      return `${item} has a pull request: ${event.url}`
    case 'pushed':
      return `${item} is pushed to the branch \`${event.branch}\`.`
    case 'not-pushed':
      return `${item} is finished on the branch \`${event.branch}\`. Nothing was pushed: the repository has no remote.`
    case 'queued':
      return `${item} is waiting to land (landing ${event.landing}).`
    case 'sent-back':
      return `${item} couldn't land yet: ${describeLandingProblem(event.why)}. ${event.agent} is working on it again.`
    case 'landed':
      return `${item} has landed.`
    case 'closed':
      return `${item} is closed.`
    case 'reopened':
      return `${item} is open again.`
  }
}

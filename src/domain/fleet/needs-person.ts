import type { DoneRefusal } from './done-refusal.ts'
import type { FleetEvent, ItemName } from './event.ts'
import { isParkedElsewhere } from './item.ts'
import type { LandingBlock } from './landing.ts'

/**
 * Whether an event means that a person has to decide or act. `fleet/status.ts` builds its list of what needs a person
 * from the same rules; a test compares the two. An agent whose session ended is on that list until it is restarted, but
 * its crash is no such event: the patrol restarts it, or parks its item.
 */
export const needsPerson = (event: FleetEvent<ItemName>): boolean => {
  switch (event.kind) {
    case 'parked':
      return !isParkedElsewhere({ parked: event.reason })
    case 'refused':
      return onlyPersonCanChange(event.why)
    case 'landing-blocked':
      return !isPassing(event.why)
    case 'stuck':
    case 'mass-death':
      return true
    case 'started':
    case 'restarted':
    case 'pull-request':
    case 'pushed':
    case 'not-pushed':
    case 'queued':
    case 'sent-back':
    case 'landed':
    case 'closed':
    case 'reopened':
    case 'crashed':
    case 'stray-ended':
    case 'flaky-gate':
    // Not this one: a hook that reports its own failure would fail again.
    case 'hook-failed':
      return false
  }
}

/** The agent can't do anything about it. */
export const onlyPersonCanChange = (why: DoneRefusal): boolean => {
  if (why.kind === 'not-approved') return true
  if (why.kind !== 'not-published') return false
  switch (why.why.kind) {
    case 'remote-unconfirmed':
    case 'remote-ambiguous':
    case 'remote-changed':
      return true
    default:
      return false
  }
}

/** It passes by itself: the queue is tried again later. */
export const isPassing = ({ kind }: LandingBlock): boolean => kind === 'offline' || kind === 'base-moves'

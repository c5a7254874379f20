/*
 * Keeps the states of an item and of its source the same. In: where both stand, and where both stood when they last
 * agreed. Out: what to do. docs/decisions/0034-items-from-elsewhere.md has the rules as a table.
 */
import type { ItemState, Phase, SourceSnapshot } from '../item.ts'

/** `gone`: deleted there, or no longer in what it exports. */
export type There = Phase | 'gone'

export const phaseOf = (state: ItemState): Phase => phases[state]

const phases: Readonly<Record<ItemState, Phase>> = {
  open: 'ready',
  hooked: 'working',
  in_review: 'working',
  parked: 'waiting',
  landed: 'done',
  closed: 'done',
}

export type SyncStep =
  | { readonly kind: 'nothing' }
  /** Both have changed in the same way. */
  | { readonly kind: 'agree' }
  | { readonly kind: 'push'; readonly to: Phase }
  | { readonly kind: 'pull'; readonly to: Exclude<Phase, 'working'> }
  /** What the source wants can't be done here; it is reported until one of them changes. */
  | { readonly kind: 'leave'; readonly why: 'at-work' | 'final' | 'gone' }

export const syncStep = (there: There, here: Phase, known: SourceSnapshot['phases']): SyncStep => {
  const changedThere = known === undefined ? there !== here : there !== known.there
  const changedHere = known === undefined ? there !== here : here !== known.here
  if (there === 'gone') return here === 'done' ? { kind: 'nothing' } : { kind: 'leave', why: 'gone' }
  if (known === undefined && there === here) return { kind: 'agree' }
  if (!changedThere && !changedHere) return { kind: 'nothing' }
  if (!changedThere) return { kind: 'push', to: here }
  if (there === here) return { kind: 'agree' }
  if (!changedHere) return pulled(there, here)
  // Both, differently. An end counts more than anything else, then what happened here, where agents are at work.
  if (here === 'done') return { kind: 'push', to: 'done' }
  if (there === 'done') return pulled(there, here)
  return there === 'working' && here === 'waiting' ? { kind: 'agree' } : { kind: 'push', to: here }
}

const pulled = (there: Phase, here: Phase): SyncStep => {
  if (here === 'done') return { kind: 'leave', why: 'final' }
  if (here === 'working') return { kind: 'leave', why: 'at-work' }
  if (there === 'working') return here === 'waiting' ? { kind: 'agree' } : { kind: 'pull', to: 'waiting' }
  return { kind: 'pull', to: there }
}

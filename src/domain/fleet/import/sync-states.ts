/*
 * Decides how to sync the states of an item and its source. In: both phases now, and when they last agreed. Out: what
 * to do. docs/decisions/0034-items-from-elsewhere.md has the rules as a table.
 */
import type { ItemState, Phase, SourceSnapshot } from '../item.ts'

/** `gone`: deleted, or missing from the source's export. */
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
  /** Both already agree; only record it. */
  | { readonly kind: 'agree' }
  | { readonly kind: 'push'; readonly to: Phase }
  | { readonly kind: 'pull'; readonly to: Exclude<Phase, 'working'> }
  /** The source's change can't be applied here. Reported until one side changes. */
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
  // Both changed, differently. Done wins over anything else; otherwise the item wins, since agents work on items.
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

/*
 * The fleet's types and state machines. In: plain values. Out: items; the files beside this one have agents, pools,
 * formulas and landings.
 */
import { AppError } from '../errors.ts'
import type { CodebaseId, EnvironmentId } from '../names.ts'
import type { LandingProblem } from './landing.ts'
import { withoutInvisible } from '../text/visible.ts'

export const itemStates = ['open', 'hooked', 'in_review', 'parked', 'landed', 'closed'] as const
export type ItemState = (typeof itemStates)[number]

/**
 * The state machine; an illegal transition throws. hooked → open: discarded, or its agent and worktree are provably
 * gone. in_review → hooked: its agent has to work on it again. parked → landed: it was merged while it waited for a
 * person.
 */
const transitions: Record<ItemState, readonly ItemState[]> = {
  open: ['hooked', 'parked', 'closed'],
  hooked: ['open', 'in_review', 'parked', 'closed'],
  in_review: ['hooked', 'parked', 'landed', 'closed'],
  parked: ['open', 'hooked', 'in_review', 'landed', 'closed'],
  landed: [],
  closed: [],
}

export const canItemBecome = (from: ItemState, to: ItemState): boolean => transitions[from].includes(to)

export const assertItemTransition = (from: ItemState, to: ItemState): void => {
  if (!canItemBecome(from, to)) throw new AppError('illegal-transition', `an item that is ${from} can't become ${to}`)
}

/** Whether the item is finished. Then its dependents may start, and it no longer holds a worktree. */
export const isSettled = (state: ItemState): boolean => transitions[state].length === 0

export const settledStates: readonly ItemState[] = itemStates.filter(isSettled)

export const priorities = [0, 1, 2, 3, 4] as const
/** 0 is the highest. */
export type Priority = (typeof priorities)[number]
export const defaultPriority: Priority = 2

export const toPriority = (value: number): Priority | undefined => priorities.find((one) => one === value)

/** Where an item was imported from. */
export type ItemSource = { readonly seen?: SourceSnapshot } & (
  | { readonly kind: 'github'; readonly repository: string; readonly number: number }
  | { readonly kind: 'beads'; readonly id: string }
)
export type SourceKind = ItemSource['kind']

/** The source's fields when they were last read. A field that differs here was edited here. */
export type SourceSnapshot = {
  /** Digests. */
  readonly title: string
  readonly body: string
  readonly priority: Priority
  readonly after: readonly number[]
  /** The states on both sides when they last agreed. */
  readonly phases?: { readonly there: Phase; readonly here: Phase }
}

/** An item's progress, in terms that both sides share. `waiting`: work can't start. */
export type Phase = 'ready' | 'working' | 'waiting' | 'done'

/** Unique within a codebase, so that importing twice adds nothing. */
export const sourceKey = (source: ItemSource): string =>
  source.kind === 'github' ? `github:${source.repository.toLowerCase()}#${source.number}` : `beads:${source.id}`

/** As people write it: `acme/app#7`, `bd-a1b2`. */
export const sourceLabel = (source: ItemSource): string =>
  source.kind === 'github' ? `${source.repository}#${source.number}` : source.id

/** Why an item waits for a person. `commands/views/` has the wording. */
export type ParkReason =
  | { readonly kind: 'asked'; readonly note: string | undefined }
  | { readonly kind: 'crashed'; readonly restarts: number }
  | { readonly kind: 'worktree-missing'; readonly path: string }
  /** Its agent crashed while another branch was checked out. `head`: undefined if none was. */
  | { readonly kind: 'other-branch'; readonly branch: string; readonly head: string | undefined }
  | { readonly kind: 'formula-failed'; readonly step: string; readonly message: string }
  | { readonly kind: 'gate-failed'; readonly command: string; readonly attempts: number }
  | { readonly kind: 'conflict'; readonly attempts: number }
  | { readonly kind: 'pull-request-closed'; readonly url: string }
  /** Its status in the source says that it has started or can't start: `in_progress`, `deferred`. */
  | { readonly kind: 'status-elsewhere'; readonly source: SourceKind; readonly status: string }
  /** It depends on something in the source that isn't an item here. */
  | { readonly kind: 'waits-elsewhere'; readonly source: SourceKind; readonly ids: readonly string[] }

/** Parked only to match its source, so no person is needed here. */
export const isParkedElsewhere = ({ parked }: Pick<Item, 'parked'>): boolean =>
  parked?.kind === 'status-elsewhere' || parked?.kind === 'waits-elsewhere'

export const maxTitleLength = 300
export const maxBodyLength = 100_000
const maxNoteLength = 2_000

/** A unit of queued work in the fleet, hooked to at most one agent. */
export type Item = {
  readonly id: number
  readonly codebaseId: CodebaseId
  readonly title: string
  readonly body: string
  readonly priority: Priority
  readonly state: ItemState
  /** The items that must be settled before it starts. */
  readonly after: readonly number[]
  /** Kept until the item is settled, even after its agent is gone. */
  readonly environmentId: EnvironmentId | undefined
  readonly source: ItemSource | undefined
  /** Set while it is parked. */
  readonly parked: ParkReason | undefined
  readonly pullRequest: string | undefined
  readonly createdBy: string
  readonly createdAt: number
  readonly updatedAt: number
}

export type ItemField = 'title' | 'body' | 'priority' | 'after'

/** One entry of an item's history. */
export type ItemChange =
  | { readonly kind: 'created' }
  | { readonly kind: 'imported'; readonly from: SourceKind }
  | { readonly kind: 'recovered' }
  /** `from`: the source in which it was changed. */
  | { readonly kind: 'edited'; readonly fields: readonly ItemField[]; readonly from?: SourceKind }
  | { readonly kind: 'hooked'; readonly from: ItemState; readonly agent: string; readonly pool: string | undefined }
  /** Its agent no longer works on it. */
  | { readonly kind: 'unhooked'; readonly to: ItemState; readonly agent: string; readonly why: UnhookReason }
  | { readonly kind: 'restarted'; readonly agent: string; readonly why: UnhookReason }
  | { readonly kind: 'parked'; readonly from: ItemState; readonly reason: ParkReason }
  | { readonly kind: 'state'; readonly from: ItemState; readonly to: ItemState }
  | { readonly kind: 'pull-request'; readonly url: string }
  /** It couldn't land, so its agent has to work on it again. */
  | { readonly kind: 'sent-back'; readonly landing: number; readonly why: LandingProblem }

/** How an agent's attempt at an item ended. */
export type UnhookReason = 'done' | 'discarded' | 'not-started' | 'crashed' | 'gone' | 'stopped' | 'closed'

/** `by`: `cli`, `slack:C1:2`, `agent:alder`. */
export type ItemHistoryEntry = { readonly at: number; readonly by: string; readonly change: ItemChange }

export const toTitle = (text: string): string => {
  const title = withoutInvisible(text).replaceAll(/\s+/g, ' ').trim()
  if (title === '' || title.length > maxTitleLength) {
    throw new AppError('usage', `an item needs a title of 1 to ${maxTitleLength} characters`, {
      remedy: 'put the details into --body',
    })
  }
  return title
}

/** What a person is asked. Shown in terminals and chats, and to the next agent that gets the item. */
export const toNote = (text: string): string => {
  const note = withoutInvisible(text).trim()
  return note.length <= maxNoteLength ? note : `${note.slice(0, maxNoteLength).toWellFormed()} …`
}

export const toBody = (text: string): string => {
  if (text.length > maxBodyLength) {
    throw new AppError('usage', `the body has ${text.length} characters; the limit is ${maxBodyLength}`, {
      remedy: 'put long material into a file of the repository and name it in the body',
    })
  }
  return withoutInvisible(text)
}

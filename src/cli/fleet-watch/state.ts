/*
 * `coppice fleet watch`. In: keys, snapshots of the fleet and what became of actions. Out: what the screen shows, and
 * what is to be done. `reduce.ts` and `render.ts` are plain functions; `watch.ts` does what they say.
 */
import type { Style } from '../../commands/views/view.ts'
import type { ParkReason } from '../../domain/fleet/item.ts'
import type { InputLine } from './input-line.ts'
import type { Key } from './keys.ts'

export type Size = { readonly columns: number; readonly rows: number }

/** By its record, because a name goes to another agent when its agent is gone. */
export type Target = { readonly id: string; readonly name: string }

/** A row, in words. */
export type Row = {
  readonly key: string
  readonly agent: Target | undefined
  readonly agentState: string
  readonly style: Style
  /** The row is about the fleet, which has stopped starting agents. */
  readonly isPausedFleet: boolean
  /** It has, or may have, a session. */
  readonly isRunning: boolean
  readonly item: { readonly id: number; readonly title: string; readonly isParked: boolean } | undefined
  readonly codebase: string
  readonly branch: string
  readonly dirty: string
  readonly ahead: string
  readonly lastSignAt: number | undefined
  /** Short; empty if it doesn't need a person. */
  readonly need: string
  /** Sentences about it, the most important first. */
  readonly details: readonly string[]
}

/** The fleet in words, as `present.ts` makes it of a snapshot. */
export type Picture = {
  readonly at: number
  /** Why nothing starts; undefined if the fleet is up. */
  readonly stopped: string | undefined
  readonly pools: string
  readonly items: string
  readonly rows: readonly Row[]
}

export type Action =
  | { readonly kind: 'stop' | 'start'; readonly agent: Target }
  | { readonly kind: 'nudge'; readonly agent: Target; readonly text: string }
  | { readonly kind: 'continue' | 'reopen' | 'land'; readonly item: number; readonly agent: Target | undefined }
  | { readonly kind: 'up' }
  | {
      readonly kind: 'withdraw'
      readonly landing: number
      readonly item: number
      /** Why the item was parked before it was queued. */
      readonly parked: ParkReason | undefined
    }
  | { readonly kind: 'restore'; readonly environment: string; readonly branch: string; readonly codebase: string }

/** How to take back what was done. */
export type Undo = { readonly action: Action; readonly question: string }

export type Tone = 'good' | 'bad' | 'plain'
export type Message = { readonly text: string; readonly tone: Tone }

export type View =
  | { readonly kind: 'list' }
  | {
      readonly kind: 'peek'
      readonly agent: Target
      readonly title: string
      /** Undefined until they were read. */
      readonly lines: readonly string[] | undefined
      /** The first line shown; undefined: the end, also when more is printed. */
      readonly top: number | undefined
    }
  | { readonly kind: 'help'; readonly top: number; readonly back: View }

/** Asked at the bottom of the view. */
export type Prompt =
  | {
      readonly kind: 'confirm'
      readonly question: readonly string[]
      readonly action: Action
      readonly undoes: Undo | undefined
    }
  | { readonly kind: 'nudge'; readonly agent: Target; readonly input: InputLine }

export type Running = {
  readonly number: number
  readonly action: Action
  readonly since: number
  /** Can be tried again if it fails. */
  readonly undoes: Undo | undefined
}

export type State = {
  readonly now: number
  readonly size: Size
  readonly picture: Picture | undefined
  /** Why the last refresh failed. */
  readonly problem: string | undefined
  readonly selected: string | undefined
  /** The first row shown. */
  readonly top: number
  readonly view: View
  readonly prompt: Prompt | undefined
  readonly message: Message | undefined
  readonly running: readonly Running[]
  readonly started: number
  /** The last one is the next to be undone. */
  readonly undo: readonly Undo[]
}

export type Event =
  | { readonly kind: 'key'; readonly key: Key }
  | { readonly kind: 'picture'; readonly picture: Picture }
  | { readonly kind: 'problem'; readonly why: string }
  | { readonly kind: 'peeked'; readonly agent: Target; readonly lines: readonly string[] }
  | { readonly kind: 'finished'; readonly number: number; readonly message: Message; readonly undo?: Undo }
  | { readonly kind: 'message'; readonly message: Message }
  | { readonly kind: 'resized'; readonly size: Size }
  | { readonly kind: 'tick'; readonly now: number }

export type Effect =
  | { readonly kind: 'quit' | 'suspend' | 'redraw' }
  | { readonly kind: 'attach' | 'peek'; readonly agent: Target }
  | { readonly kind: 'run'; readonly number: number; readonly action: Action }

export type Step = { readonly state: State; readonly effects: readonly Effect[] }

export const initialState = (options: Pick<State, 'now' | 'size'>): State => ({
  ...options,
  picture: undefined,
  problem: undefined,
  selected: undefined,
  top: 0,
  view: { kind: 'list' },
  prompt: undefined,
  message: undefined,
  running: [],
  started: 0,
  undo: [],
})

export const rowsOf = ({ picture }: Pick<State, 'picture'>): readonly Row[] => picture?.rows ?? []

export const selectedRow = (state: Pick<State, 'picture' | 'selected'>): Row | undefined =>
  rowsOf(state).find(({ key }) => key === state.selected)

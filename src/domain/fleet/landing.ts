import { AppError } from '../errors.ts'
import type { CodebaseId, Sha } from '../names.ts'

export const landingStates = ['queued', 'testing', 'landed', 'refused', 'superseded'] as const
export type LandingState = (typeof landingStates)[number]

/** testing → queued: the remote moved, or the testing process died. superseded: the branch was queued again. */
const transitions: Record<LandingState, readonly LandingState[]> = {
  queued: ['testing', 'refused', 'superseded'],
  testing: ['queued', 'landed', 'refused', 'superseded'],
  landed: [],
  refused: [],
  superseded: [],
}

export const assertLandingTransition = (from: LandingState, to: LandingState): void => {
  if (!transitions[from].includes(to)) {
    throw new AppError('illegal-transition', `a landing that is ${from} can't become ${to}`)
  }
}

/** A branch that is queued for its base branch, or has been. */
export type Landing = {
  readonly id: number
  readonly codebaseId: CodebaseId
  /** Undefined for a branch that was queued by name. */
  readonly itemId: number | undefined
  readonly branch: string
  readonly sha: Sha
  readonly state: LandingState
  readonly landedSha: Sha | undefined
  readonly attempts: number
  readonly gate: LandingGate | undefined
  readonly createdBy: string
  readonly createdAt: number
  readonly updatedAt: number
}

/** The last gate command that ran. */
export type LandingGate = { readonly command: string; readonly exitCode: number | null; readonly log: string }

/*
 * May an environment be removed? In: the answers of all gates. Out: the reasons to refuse. A gate that can't tell
 * refuses.
 */
import type { Fact } from './reason.ts'

/** The checks before a removal changes anything. *Cannot tell* counts as no. */
export const gateNames = [
  'ours',
  'no-mount',
  'not-in-use',
  'nobody-elses',
  'nothing-uncommitted',
  'nothing-unreachable',
  'no-worktree-inside',
  'no-repository-inside',
  'no-kept-files',
] as const
export type GateName = (typeof gateNames)[number]

export type Answer = 'yes' | 'no' | 'cannot-tell'

/** One reason; a gate that passes has a single `yes`. */
export type GateAnswer = {
  readonly gate: GateName
  readonly answer: Answer
  /** What was found; undefined for a `yes`. */
  readonly fact?: Fact
}

export const yes = (gate: GateName): GateAnswer => ({ gate, answer: 'yes' })
export const no = (gate: GateName, fact: Fact): GateAnswer => ({ gate, answer: 'no', fact })
export const cannotTell = (gate: GateName, fact: Fact): GateAnswer => ({ gate, answer: 'cannot-tell', fact })

/**
 * What --force may override: work that the restore point keeps, and other conversations' holds. Never a live process,
 * something that isn't ours, or a mount or someone's worktree inside, which no restore point can hold. Nothing
 * overrides a *cannot tell*.
 */
const forceable: Record<GateName, boolean> = {
  ours: false,
  'no-mount': false,
  'not-in-use': false,
  'nobody-elses': true,
  'nothing-uncommitted': true,
  'nothing-unreachable': true,
  'no-worktree-inside': false,
  'no-repository-inside': true,
  'no-kept-files': true,
}

export const refusals = (answers: readonly GateAnswer[], force: boolean): GateAnswer[] =>
  answers.filter((a) => a.answer !== 'yes' && !(force && a.answer === 'no' && forceable[a.gate]))

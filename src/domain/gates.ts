import type { Unreachable } from './unreachable.ts'

/** The questions removal asks before it touches anything. *Cannot tell* counts as no. */
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
  readonly detail: string
  /** The mount, worktree or repository in question: an absolute path, for the remedy. */
  readonly path?: string
  /** The repository that a linked worktree belongs to. */
  readonly repository?: string
  /** Of uncommitted work, for the remedy. */
  readonly uncommitted?: Uncommitted
  /** Of what is in use, for the remedy. */
  readonly use?: Use
  /** Of what removal would leave unreachable, for the remedy. */
  readonly unreachable?: Unreachable
}

export type Use =
  | { readonly kind: 'lease'; readonly purpose: string; readonly pid: number }
  /** By git's own means, by another tool. */
  | { readonly kind: 'lock' }
  /** Whoever asks stands in it. */
  | { readonly kind: 'you' }
  | { readonly kind: 'process'; readonly pid: number; readonly command: string }

export type Uncommitted =
  /** Changed or untracked, staged or not: what `git status` shows. */
  | { readonly kind: 'files' }
  /** Changed, and hidden from `git status` by a bit in the index. */
  | { readonly kind: 'hidden'; readonly paths: readonly string[] }
  | { readonly kind: 'operation'; readonly operation: string }
  | { readonly kind: 'submodule'; readonly path: string; readonly problem: SubmoduleProblem }

export type SubmoduleProblem = 'is at another commit' | 'has changes' | 'has files but no .git'

/**
 * What --force may override: work that the restore point keeps, and other conversations' holds.
 * Never a live process, something that is not ours, or a mount or somebody's worktree inside, which no restore point can
 * hold. A *cannot tell* is overridden by nothing.
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

import type { EnvironmentId } from './names.ts'

/** Kinds of holders: each has its own rule for how long it keeps an environment. */
export type HolderKind = 'conversation'

/** Whoever works in an environment from one order to the next. */
export type Holder = {
  readonly kind: HolderKind
  readonly id: string
  /** Where it works now. */
  readonly environmentId: EnvironmentId | undefined
}

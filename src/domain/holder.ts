import type { EnvironmentId } from './names.ts'

/** Each kind has its own rule for how long it keeps an environment. */
export type HolderKind = 'conversation' | 'item'

/** Something that uses an environment across messages. */
export type Holder = {
  readonly kind: HolderKind
  readonly id: string
  /** Its current environment. */
  readonly environmentId: EnvironmentId | undefined
}

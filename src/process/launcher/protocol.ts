import type { ProcessIdentity } from '../../domain/process-identity.ts'

/** A program to start, with its whole environment. */
export type LaunchRequest = {
  readonly id: number
  readonly program: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly stdin: string | Uint8Array | undefined
  /** At most this much of its error output is kept: the start and the end. */
  readonly stderrLimit: number
}

/** First `ready`. Then, for each program, `started` and `ended`, or `failed` if it couldn't be started. */
export type LaunchReport =
  | { readonly kind: 'ready' }
  | ({ readonly id: number } & (
      | { readonly kind: 'started'; readonly identity: ProcessIdentity }
      | { readonly kind: 'failed'; readonly message: string }
      | ({ readonly kind: 'ended' } & LaunchEnd)
    ))

export type LaunchEnd = {
  readonly exitCode: number | null
  readonly signal: string | null
  readonly stdout: Uint8Array
  readonly stderr: Uint8Array
}

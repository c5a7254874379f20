import type { Readable } from 'node:stream'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import type { Repo, Tree } from '../domain/tree.ts'
import type { Setting } from './neutral.ts'

export type { Repo, Tree }

export type GitRequest = {
  /** A name for logs and errors, such as `worktree add`. */
  readonly operation: string
  /** `{ cwd }` only for discovery and clone, where no repository is known yet. */
  readonly at: Repo | Tree | { readonly cwd: string }
  readonly args: readonly string[]
  /** Exit codes that are answers (default: [0]). */
  readonly ok?: readonly number[]
  readonly stdin?: string | Buffer | Readable
  /** May take git's optional locks (refresh the index). Reads never do. */
  readonly locks?: boolean
  /** On disk, not merely written, when git says so. */
  readonly durable?: boolean
  /** Speaks to a remote: gets the askpass and a longer time-out. */
  readonly network?: boolean
  /** Speaks to a remote without any credentials: no askpass, no credential helper, no `.netrc`, no rewritten URL. */
  readonly anonymous?: boolean
  readonly indexFile?: string
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
  /** Called before anything else can happen, so that the journal can name a child that outlives us. */
  readonly onSpawn?: (identity: ProcessIdentity) => void
  /** Takes standard output as it comes, at the pace it is taken; the result's is then empty. */
  readonly onStdout?: (chunk: Buffer) => void | Promise<void>
  readonly onStderr?: (chunk: string) => void
  /** More settings, after the ones that make the call safe. */
  readonly settings?: readonly Setting[]
  /** Author and committer of a commit we make. */
  readonly identity?: Readonly<Record<string, string>>
}

export type GitResult = {
  readonly exitCode: number
  /** Decoded as UTF-8; file names may not be, see `stdoutBytes`. */
  readonly stdout: string
  readonly stdoutBytes: Buffer
  readonly stderr: string
}

/** What a caller may pass to any operation. */
export type CallOptions = { readonly signal?: AbortSignal | undefined }

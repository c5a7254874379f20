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
  /** Expected exit codes (default: [0]). */
  readonly ok?: readonly number[]
  readonly stdin?: string | Buffer | Readable
  /** May take git's optional locks (refresh the index). Reads never do. */
  readonly locks?: boolean
  /** Only reads: concurrent callers with the same arguments, and without a signal, share one process. */
  readonly shared?: boolean
  /** Sync to disk before git exits. */
  readonly durable?: boolean
  /** Contacts a remote: gets the askpass and a longer timeout. */
  readonly network?: NetworkUse
  /** Contacts a remote without credentials: no askpass, no credential helper, no `.netrc`, no rewritten URL. */
  readonly anonymous?: boolean
  readonly indexFile?: string
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
  /** If it must be stopped: SIGKILL, without SIGTERM first. Leaves its lock files. */
  readonly killAtOnce?: boolean
  /** Called before anything else, so the journal can record a child that may outlive us. */
  readonly onSpawn?: (identity: ProcessIdentity) => void
  /** Receives standard output in chunks, with backpressure; the result's is then empty. */
  readonly onStdout?: (chunk: Buffer) => void | Promise<void>
  readonly onStderr?: (chunk: string) => void
  /** More settings, after those that make the call safe. */
  readonly settings?: readonly Setting[]
  /** Author and committer for commits. */
  readonly identity?: Readonly<Record<string, string>>
}

export type NetworkUse = {
  /** The address it contacts, or the one whose credentials it gets. */
  readonly url: string | undefined
  /** It also contacts other addresses, which the repository names. */
  readonly others?: true
}

export type GitResult = {
  readonly exitCode: number
  /** Decoded as UTF-8; for file names use `stdoutBytes`. */
  readonly stdout: string
  readonly stdoutBytes: Buffer
  readonly stderr: string
}

/** Options for every operation. */
export type CallOptions = { readonly signal?: AbortSignal | undefined }

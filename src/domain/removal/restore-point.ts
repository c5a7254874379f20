import type { IsolatedEnvironment } from '../environment.ts'
import type { CodebaseId, EnvironmentId, Sha } from '../names.ts'
import type { Work } from '../work.ts'

/** Everything a removed environment held. Git objects are held by `ref`; the rest is in its directory below `restore/` in the home. */
export type RestorePoint = {
  readonly id: string
  readonly host: string
  readonly codebaseId: CodebaseId
  readonly environmentId: EnvironmentId
  readonly createdAt: number
  readonly expiresAt: number
  /** The ref that keeps the objects, `refs/coppice/restore/<id>`. */
  readonly ref: string
  readonly commit: Sha
  readonly contents: RestoreContents
}

export type RestoreContents = {
  readonly environment: IsolatedEnvironment
  readonly aliases: readonly Work[]
  /** HEAD: on a branch, or detached. */
  readonly head: { readonly branch: string | undefined; readonly sha: Sha | undefined }
  /** The settings of the branch that HEAD was on, which go with the branch. Points written before have none. */
  readonly branchSettings?: readonly (readonly [variable: string, value: string])[]
  /** The settings of the environment's own branch, where HEAD was on another one. */
  readonly ownBranchSettings?: readonly (readonly [variable: string, value: string])[]
  /** Where the environment's branch stood; undefined when it was gone already. */
  readonly tip: Sha | undefined
  /** Of a clone: the branch that it was made on, whatever it was renamed to. */
  readonly madeOn?: string
  /** Present only when index or working files differ from HEAD. */
  readonly dirty: boolean
  /** A commit whose tree has the content of annotated tags, `tag-<id>`: only a ref can hold the tags themselves. */
  readonly tags?: Sha
  /** Files whose raw bytes a checkout would not write, though git calls them clean. */
  readonly converted: readonly string[]
  /**
   * Files of Git LFS, kept beside git in `large/<oid>`; git has their pointers. Raw paths. Undefined in points of an
   * earlier version, and where the files were missing: then a checkout decides which bytes a clean file gets.
   */
  readonly largeFiles?: readonly LargeFile[]
  /**
   * Files with `skip-worktree` set that were there all the same: of such files all others were not. Raw paths. Undefined
   * in points of an earlier version, and where the files were missing.
   */
  readonly skippedButThere?: readonly string[]
  /** By raw path, a directory with a `/` at its end: see `Permissions`. */
  readonly modes: Readonly<Record<string, number>>
  /** Undefined in points of an earlier version, and where the files were missing. */
  readonly permissions?: Pick<Permissions, 'umask' | 'emptyDirectories'>
  /** Files kept beside git, under `<home>/restore/<id>`; relative paths. */
  readonly ignored: readonly string[]
  readonly nested: readonly string[]
  /** What was not kept, and why; named in the answer. */
  readonly leftOut: readonly LeftOut[]
}

/** What git does not record: a private file must not come back readable by all. Raw paths. */
export type Permissions = {
  /** What files and directories have that are not among `modes`. */
  readonly umask: number
  readonly modes: Readonly<Record<string, number>>
  readonly emptyDirectories: readonly string[]
}

export type LargeFile = { readonly path: string; readonly oid: string }

export type LeftOut = { readonly path: string; readonly reason: string }

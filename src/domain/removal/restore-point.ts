import type { IsolatedEnvironment } from '../environment.ts'
import type { CodebaseId, EnvironmentId, Sha } from '../names.ts'
import type { Work } from '../work.ts'

/** Everything a removed environment held: git objects in `ref`, the rest below `restore/` in the home. */
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
  /** The settings of HEAD's branch, which are deleted with the branch. Older points have none. */
  readonly branchSettings?: readonly (readonly [variable: string, value: string])[]
  /** The settings of the environment's own branch, if HEAD was on another. */
  readonly ownBranchSettings?: readonly (readonly [variable: string, value: string])[]
  /** The tip of the environment's branch; undefined if already gone. */
  readonly tip: Sha | undefined
  /** For a clone: the branch it was created on, even if renamed. */
  readonly madeOn?: string
  /** Whether index or working files differ from HEAD. */
  readonly dirty: boolean
  /** A commit whose tree has the content of annotated tags, `tag-<id>`: only a ref can hold the tags themselves. */
  readonly tags?: Sha
  /** Files that git calls clean although a checkout would write other bytes. */
  readonly converted: readonly string[]
  /**
   * Git LFS files, kept outside git in `large/<oid>`; git has their pointers. Raw paths. Undefined in points of an
   * earlier version, and if the files were missing: then a checkout decides which bytes a clean file gets.
   */
  readonly largeFiles?: readonly LargeFile[]
  /**
   * Files with `skip-worktree` set that existed; all other such files didn't. Raw paths. Undefined in points of an
   * earlier version, and if the files were missing.
   */
  readonly skippedButThere?: readonly string[]
  /** By raw path, directories with a trailing `/`: see `Permissions`. */
  readonly modes: Readonly<Record<string, number>>
  /** Undefined in points of an earlier version, and if the files were missing. */
  readonly permissions?: Pick<Permissions, 'umask' | 'emptyDirectories'>
  /** Files kept outside git, in `<home>/restore/<id>`; relative paths. */
  readonly ignored: readonly string[]
  readonly nested: readonly string[]
  /** What wasn't kept, and why; shown to the user. */
  readonly leftOut: readonly LeftOut[]
}

/** What git doesn't record: a private file must not come back world-readable. Raw paths. */
export type Permissions = {
  /** For files and directories that aren't in `modes`. */
  readonly umask: number
  readonly modes: Readonly<Record<string, number>>
  readonly emptyDirectories: readonly string[]
}

export type LargeFile = { readonly path: string; readonly oid: string }

export type LeftOut = { readonly path: string; readonly reason: string }

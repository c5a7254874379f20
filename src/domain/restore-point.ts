import type { IsolatedEnvironment } from './environment.ts'
import type { CodebaseId, EnvironmentId, Sha } from './names.ts'
import type { Work } from './work.ts'

/** Everything a removed environment held. Git objects hang on `ref`; what git must not hold lies in `directory`. */
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
  /** Where the environment's branch stood; undefined when it was gone already. */
  readonly tip: Sha | undefined
  /** Present only when index or working files differ from HEAD. */
  readonly dirty: boolean
  /** Files whose raw bytes a checkout would not write, though git calls them clean. */
  readonly converted: readonly string[]
  /** Permissions that git does not record, by raw path: a private file must not come back readable by all. */
  readonly modes: Readonly<Record<string, number>>
  /** Files kept beside git, under `<home>/restore/<id>`; relative paths. */
  readonly ignored: readonly string[]
  readonly nested: readonly string[]
  /** What was not kept, and why; named in the answer. */
  readonly leftOut: readonly LeftOut[]
}

export type LeftOut = { readonly path: string; readonly reason: string }

import type { IsolatedEnvironment } from '../environment.ts'
import type { NotPublished } from '../forge/publishing.ts'
import type { UncommittedWork } from '../removal/uncommitted.ts'

/** Why `coppice done` was refused. `commands/views/` has the wording and remedies. */
export type DoneRefusal =
  /** It wasn't run in the session of an agent. */
  | { readonly kind: 'no-agent' }
  /** Run in an earlier session of the agent. */
  | { readonly kind: 'other-life'; readonly agent: string }
  | { readonly kind: 'no-item'; readonly agent: string }
  | { readonly kind: 'item-state'; readonly itemId: number; readonly state: string }
  | { readonly kind: 'worktree'; readonly path: string; readonly why: string }
  | { readonly kind: 'uncommitted'; readonly path: string; readonly work: UncommittedWork }
  | { readonly kind: 'other-branch'; readonly path: string; readonly head: string | undefined; readonly branch: string }
  | { readonly kind: 'no-commits'; readonly branch: string }
  | { readonly kind: 'not-published'; readonly environment: IsolatedEnvironment; readonly why: NotPublished }
  /** No pull request could be opened; the branch is pushed. */
  | { readonly kind: 'no-pull-request'; readonly said: string }
  | { readonly kind: 'no-forge' }
  | {
      readonly kind: 'command-failed'
      readonly command: string
      readonly exitCode: number | null
      readonly log: string
    }
  | { readonly kind: 'not-approved'; readonly codebase: string; readonly commands: readonly string[] }

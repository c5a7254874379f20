import type { Unreachable } from './unreachable.ts'

/** What a gate found, as a value: commands/views writes the remedies and sentences. */
export type Fact =
  | { readonly kind: 'other-host' }
  | { readonly kind: 'adopted' }
  /** Something else is at its path, or its record is another's. */
  | { readonly kind: 'another-worktree'; readonly why: string }
  | { readonly kind: 'outside-root'; readonly path: string }
  /** Paths are absolute; `name` is for display, relative to the worktree. */
  | { readonly kind: 'mount'; readonly path: string; readonly name: string; readonly what: string }
  | Use
  | { readonly kind: 'conversation'; readonly platform: string; readonly conversationId: string }
  /** The item isn't settled. */
  | { readonly kind: 'item'; readonly id: number }
  /** It belongs to a crew member. */
  | { readonly kind: 'crew'; readonly name: string }
  /** A persistent chat made it, or has worked in it. */
  | { readonly kind: 'persistent' }
  | Uncommitted
  | Unreachable
  /** `repository`: the one it belongs to. */
  | { readonly kind: 'worktree-inside'; readonly path: string; readonly name: string; readonly repository: string }
  | { readonly kind: 'repository-inside'; readonly path: string; readonly name: string; readonly work: RepositoryWork }
  /** Files that nobody has reviewed with the commit. Raw paths, made printable. */
  | {
      readonly kind: 'not-in-commit'
      readonly state: 'changed' | 'untracked' | 'ignored'
      readonly paths: readonly string[]
    }
  /** A file that the configuration says to keep and that differs from its source. */
  | { readonly kind: 'kept-file'; readonly path: string }
  | { readonly kind: 'unknown'; readonly why: string }
  | { readonly kind: 'unknown-lease'; readonly purpose: string }
  | { readonly kind: 'unknown-files' }
  | { readonly kind: 'unknown-instance' }

/** What only this repository holds, or why that is unknown. */
export type RepositoryWork =
  /** It shares something with other directories. */
  | { readonly kind: 'borrows-objects' | 'has-worktrees' | 'partial-clone' }
  | { readonly kind: 'operation'; readonly operation: string }
  | { readonly kind: 'commits' | 'changed' | 'untracked'; readonly count: number }
  /** One that leads to no commit, such as a tag on a file. */
  | { readonly kind: 'ref'; readonly ref: string }
  | { readonly kind: 'name-not-utf8' | 'copied-worktree' | 'too-many' }
  | { readonly kind: 'leads-nowhere'; readonly path: string }
  | { readonly kind: 'unknown'; readonly message: string }
  /** In a repository inside it. */
  | { readonly kind: 'inside'; readonly name: string; readonly work: RepositoryWork }

export type Use =
  | { readonly kind: 'lease'; readonly purpose: string; readonly pid: number }
  /** An agent of the fleet whose session may be alive. */
  | { readonly kind: 'agent'; readonly name: string }
  /** A git lock, set by another tool. */
  | { readonly kind: 'lock'; readonly reason: string }
  /** The caller is inside. */
  | { readonly kind: 'you' }
  | { readonly kind: 'process'; readonly pid: number; readonly command: string }

export type Uncommitted =
  /** Staged or not: what `git status` shows. */
  | { readonly kind: 'changed'; readonly count: number }
  | { readonly kind: 'untracked'; readonly count: number }
  /** Changed, but hidden from `git status` by an index flag. */
  | { readonly kind: 'hidden'; readonly paths: readonly string[] }
  | { readonly kind: 'operation'; readonly operation: string }
  | { readonly kind: 'submodule'; readonly path: string; readonly problem: SubmoduleProblem }
  | { readonly kind: 'other-branch'; readonly head: string; readonly branch: string }
  | { readonly kind: 'directory-gone' }
  | { readonly kind: 'changed-meanwhile' }

export type SubmoduleProblem = 'is at another commit' | 'has changes' | 'has files but no .git'

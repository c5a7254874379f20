import { describeUnreachable, type Unreachable } from './unreachable.ts'
import { counted } from '../words.ts'

/** What a gate found, as a value: remedies are made from it, and so is the sentence about it. */
export type Fact =
  | { readonly kind: 'other-host' }
  | { readonly kind: 'adopted' }
  /** Something else is at its path, or its record is somebody else's. */
  | { readonly kind: 'another-worktree'; readonly why: string }
  | { readonly kind: 'outside-root'; readonly path: string }
  /** Paths are absolute; `name` is as it is shown, relative to the worktree. */
  | { readonly kind: 'mount'; readonly path: string; readonly name: string; readonly what: string }
  | Use
  | { readonly kind: 'conversation'; readonly platform: string; readonly conversationId: string }
  | Uncommitted
  | Unreachable
  /** `repository`: the one that it belongs to. */
  | { readonly kind: 'worktree-inside'; readonly path: string; readonly name: string; readonly repository: string }
  | { readonly kind: 'repository-inside'; readonly path: string; readonly name: string; readonly work: string }
  /** A file that the configuration says to keep, and that differs from its source. */
  | { readonly kind: 'kept-file'; readonly path: string }
  | { readonly kind: 'unknown'; readonly why: string }
  | { readonly kind: 'unknown-lease'; readonly purpose: string }
  | { readonly kind: 'unknown-files' }
  | { readonly kind: 'unknown-instance' }

export type Use =
  | { readonly kind: 'lease'; readonly purpose: string; readonly pid: number }
  /** By git's own means, by another tool. */
  | { readonly kind: 'lock'; readonly reason: string }
  /** Whoever asks stands in it. */
  | { readonly kind: 'you' }
  | { readonly kind: 'process'; readonly pid: number; readonly command: string }

export type Uncommitted =
  /** Staged or not: what `git status` shows. */
  | { readonly kind: 'changed'; readonly count: number }
  | { readonly kind: 'untracked'; readonly count: number }
  /** Changed, and hidden from `git status` by a bit in the index. */
  | { readonly kind: 'hidden'; readonly paths: readonly string[] }
  | { readonly kind: 'operation'; readonly operation: string }
  | { readonly kind: 'submodule'; readonly path: string; readonly problem: SubmoduleProblem }
  | { readonly kind: 'other-branch'; readonly head: string; readonly branch: string }
  | { readonly kind: 'directory-gone' }
  | { readonly kind: 'changed-meanwhile' }

export type SubmoduleProblem = 'is at another commit' | 'has changes' | 'has files but no .git'

export const describeFact = (fact: Fact): string => {
  switch (fact.kind) {
    case 'other-host':
      return 'it is on another host'
    case 'adopted':
      return 'it was adopted, not created'
    case 'another-worktree':
      return fact.why
    case 'outside-root':
      return `${fact.path} is outside the directories that Coppice manages`
    case 'mount':
      return `something is mounted inside it: ${fact.name} (${fact.what})`
    case 'lease':
      return `in use: ${fact.purpose} (process ${fact.pid})`
    case 'lock':
      return lockedBy(fact.reason)
    case 'you':
      return 'you are inside it: leave it first'
    case 'process':
      return `process ${fact.pid} (${fact.command}) is inside it`
    case 'conversation':
      return `${fact.platform}:${fact.conversationId} is using it`
    case 'changed':
      return `${counted(fact.count, 'file')} changed`
    case 'untracked':
      return `${fact.count} untracked`
    case 'hidden': {
      const count = counted(fact.paths.length, 'file')
      return `${count} changed, but hidden by assume-unchanged, skip-worktree or timestamps: ${fact.paths.slice(0, 3).join(', ')}`
    }
    case 'operation':
      return inProgress(fact.operation)
    case 'submodule':
      return `submodule ${fact.path} ${fact.problem}`
    case 'other-branch':
      return `${fact.head} is checked out in it, not ${fact.branch}`
    case 'directory-gone':
      return "its directory is gone (unmounted?), so its files can't be checked"
    case 'changed-meanwhile':
      return 'it changed while it was being removed'
    case 'worktree-inside':
      return `it contains a worktree: ${fact.name}`
    case 'repository-inside':
      return `it contains a repository: ${fact.name} (${fact.work})`
    case 'kept-file':
      return `${fact.path} differs from its source`
    case 'unknown':
      return `cannot tell: ${fact.why}`
    case 'unknown-lease':
      return `cannot tell whether "${fact.purpose}" still runs`
    case 'unknown-files':
      return "its files can't be checked"
    case 'unknown-instance':
      return 'cannot tell whether it is still the same worktree'
    case 'detached-head':
    case 'own-ref':
    case 'clone-ref':
    case 'more-clone-refs':
    case 'clone-worktrees':
    case 'submodule-commits':
    case 'submodule-refs':
    case 'submodule-worktrees':
      return describeUnreachable(fact)
  }
}

export const lockedBy = (reason: string): string => `locked by another tool${reason === '' ? '' : `: ${reason}`}`

export const inProgress = (operation: string): string =>
  `${operation === 'am' ? 'an' : 'a'} ${operation} is in progress`

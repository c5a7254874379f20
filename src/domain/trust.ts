import type { IsolationHints } from './hints.ts'
import type { Work } from './work.ts'

/*
 * Trust, defined once. Content and messages are the repository's own only with proof; whatever is not proven is treated
 * like a pull request from a fork.
 */

/**
 * Where a worktree's content comes from.
 * own: proven, by the forge, by a branch of our remote, or made here. vouched: a person at the terminal said so.
 * unproven: everything else.
 */
export type Trust = 'own' | 'vouched' | 'unproven'

export const isTrusted = (trust: Trust): boolean => trust !== 'unproven'

/** What a worktree and the programs in it get. */
export type Privileges = {
  /** `worktree.copy`, `worktree.link` and the issue store: the checkout's secrets and ways out of the worktree. */
  readonly files: boolean
  /** `worktree.setup` and `worktree.teardown`. */
  readonly scripts: boolean
  /** `base`: only the submodules that base has too, from base's addresses and without credentials. */
  readonly submodules: 'all' | 'base'
  /** Large files of Git LFS, whose server the commit itself may name. */
  readonly largeFiles: boolean
}

/** `forksAllowed`: the repository says `worktree.allowForks` and a person has approved that. */
export const privilegesOf = (trust: Trust, forksAllowed: boolean): Privileges => {
  const trusted = isTrusted(trust)
  return {
    files: trusted || forksAllowed,
    scripts: trusted || forksAllowed,
    submodules: trusted ? 'all' : 'base',
    largeFiles: trusted,
  }
}

/**
 * Where a message comes from. Everything but a pull request is about our own work. Of a pull request only an explicit
 * `isForkPR: false` is proof; the resolver asks the remote where the platform does not know.
 */
export const isOwnMessage = (work: Work, { isForkPR }: IsolationHints): boolean =>
  work.type === 'pr' ? isForkPR === false : work.type !== 'review'

/** The agent reads settings and instructions in the worktree only if both the worktree and the message are trusted. */
export const isTrustedRun = (tree: Trust, ownMessage: boolean): boolean => isTrusted(tree) && ownMessage

/**
 * The other works that an environment may stand for: one that is not trusted stands for no work but its own pull
 * request, or an issue's messages would end up in a stranger's worktree.
 */
export const aliasesFor = (trust: Trust, work: Work, aliases: readonly Work[]): readonly Work[] =>
  isTrusted(trust) ? aliases : aliases.filter(({ type, id }) => (type === 'pr' || type === 'review') && id === work.id)

/** Why something counts as a fork's although nobody said that it is one. */
export type Doubt =
  /** About a branch: where it comes from, or where it goes. */
  | { readonly kind: 'follows-ref'; readonly branch: string; readonly ref: string }
  | { readonly kind: 'follows-elsewhere' | 'pushes-elsewhere'; readonly branch: string }
  /** Commits that nothing proves to be ours. `first` stands for them where it is the only one. */
  | { readonly kind: 'remote-silent'; readonly remote: string; readonly commits: number; readonly first: string }
  | { readonly kind: 'foreign-commits'; readonly commits: number; readonly first: string }
  /** About a pull request. */
  | { readonly kind: 'no-remote'; readonly codebase: string }
  | { readonly kind: 'origin-unknown'; readonly message: string }
  | { readonly kind: 'no-such-branch'; readonly remote: string; readonly branch: string }
  | { readonly kind: 'no-head'; readonly remote: string }
  /** Without `branch`: it is the tip of none. */
  | { readonly kind: 'not-a-tip'; readonly head: string; readonly remote: string; readonly branch?: string }
  | { readonly kind: 'several-branches'; readonly head: string; readonly remote: string }

import type { IsolationHints } from './hints.ts'
import { isAboutPullRequest, type Work } from './work.ts'

/*
 * The only definition of trust. Content and messages are the repository's own only with proof; anything unproven is
 * treated like a pull request from a fork.
 */

/**
 * Where a worktree's content comes from.
 * own: proven by the forge, by a branch of our remote, or created here.
 * vouched: a person at the terminal vouched for one commit (`vouchedSha`).
 * lapsed: vouched for, but an untrusted run has worked in it since. It still has our files.
 * unproven: everything else.
 */
export type Trust = 'own' | 'vouched' | 'lapsed' | 'unproven'

export const isTrusted = (trust: Trust): boolean => trust === 'own' || trust === 'vouched'

/** Someone vouched for it, so it got our files: never move it to a commit that nobody has reviewed. */
export const wasVouchedFor = (trust: Trust): boolean => trust === 'vouched' || trust === 'lapsed'

/** What a worktree and its programs get. */
export type Privileges = {
  /** `worktree.copy`, `worktree.link` and the issue store: secrets of the checkout, and paths out of the worktree. */
  readonly files: boolean
  /** `worktree.setup` and `worktree.teardown`. */
  readonly scripts: boolean
  /** `base`: only submodules that base has too, from base's URLs and without credentials. */
  readonly submodules: 'all' | 'base'
  /** Git LFS files, whose server the commit itself may choose. */
  readonly largeFiles: boolean
}

/** `forksAllowed`: the repository sets `worktree.allowForks`, and a person approved it. */
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
 * Everything but a pull request is our own work. For a pull request, only an explicit `isForkPR: false` is proof; the
 * resolver asks the remote if the platform doesn't know.
 */
export const isOwnMessage = (work: Work, { isForkPR }: IsolationHints): boolean =>
  work.type === 'pr' ? isForkPR === false : work.type !== 'review'

/** The agent reads settings and instructions in the worktree only if both the worktree and the message are trusted. */
export const isTrustedRun = (tree: Trust, ownMessage: boolean): boolean => isTrusted(tree) && ownMessage

/**
 * The other works that an environment may serve. An untrusted one serves only its own pull request; otherwise an
 * issue's messages would end up in a stranger's worktree.
 */
export const aliasesFor = (trust: Trust, work: Work, aliases: readonly Work[]): readonly Work[] =>
  isTrusted(trust) ? aliases : aliases.filter((alias) => isAboutPullRequest(alias) && alias.id === work.id)

/**
 * Whether a work may be found in this environment because a person linked its conversation to it. Our own work isn't
 * found in a stranger's tree, nor a stranger's pull request in a tree with our files; but a pull request that a person
 * vouched for is found in its own.
 */
export const mayServe = (
  { trust, prNumber }: { readonly trust: Trust; readonly prNumber: number | undefined },
  work: Work,
  ownMessage: boolean,
): boolean => {
  const isItsOwn = isAboutPullRequest(work) && Number(work.id) === prNumber
  return ownMessage ? isTrusted(trust) || isItsOwn : isItsOwn && trust !== 'own'
}

/** Why something counts as a fork's although it wasn't declared one. */
export type Doubt =
  /** About a branch: where it comes from, or where it goes. */
  | { readonly kind: 'follows-ref'; readonly branch: string; readonly ref: string }
  | { readonly kind: 'follows-elsewhere' | 'pushes-elsewhere'; readonly branch: string }
  /** Commits not proven to be ours. `first` is named if it is the only one. */
  | { readonly kind: 'remote-silent'; readonly remote: string; readonly commits: number; readonly first: string }
  | { readonly kind: 'foreign-commits'; readonly commits: number; readonly first: string }
  /** About a pull request. */
  | { readonly kind: 'no-remote'; readonly codebase: string }
  | { readonly kind: 'origin-unknown'; readonly message: string }
  | { readonly kind: 'no-such-branch'; readonly remote: string; readonly branch: string }
  | { readonly kind: 'no-head'; readonly remote: string }
  /** Without `branch`: the tip of no branch. */
  | { readonly kind: 'not-a-tip'; readonly head: string; readonly remote: string; readonly branch?: string }
  | { readonly kind: 'several-branches'; readonly head: string; readonly remote: string }

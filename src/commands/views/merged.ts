import type { MergeDoubt, Merged, Proven, StaleBase } from '../../domain/merge-proof.ts'
import type { BranchNote, BranchOutcome, RemovalReason } from '../../domain/removal/branch-note.ts'
import { shellWord } from '../../domain/text/shell-word.ts'
import { counted } from '../../domain/text/words.ts'
import type { View } from './view.ts'

/*
 * Whether a branch is merged, and what that means for it and its worktree. Each function returns the end of a sentence,
 * without a full stop.
 */

/** "merged: ancestor of origin/main", "2 commits not on main". */
export const describeMerged = (merged: Merged, base: string): string => {
  switch (merged.value) {
    case 'yes':
      return `merged: ${describeProof(merged)}`
    case 'no':
      return `${counted(merged.own, 'commit')} not on ${base}`
    case 'empty':
      return 'no commits of its own'
    case 'cannot-tell':
      return `cannot tell whether it is merged: ${describeMergeDoubt(merged.why)}`
  }
}

export const describeProof = (proven: Proven): string => {
  const { base } = proven
  switch (proven.proof) {
    case 'ancestor':
      return `ancestor of ${base}`
    case 'same-tree':
      return `same content as ${base}`
    case 'merge-changes-nothing':
      return `merging it into ${base} changes nothing`
    case 'squash':
      return `squash of ${short(proven.commit)} on ${base}`
    case 'forge':
      return `PR #${proven.pullRequest.number} on ${proven.pullRequest.forge}`
  }
}

const describeMergeDoubt = (doubt: MergeDoubt): string => {
  switch (doubt.kind) {
    case 'not-asked':
      return 'not asked'
    case 'own-base':
      return `base is its own branch ${doubt.base}`
    case 'branch-gone':
      return `branch ${doubt.branch} is gone`
    case 'base-of-worktree':
      return `base ${doubt.base} was created for a worktree`
    case 'base-without-reflog':
      return `base ${doubt.base} has no reflog that says when it was created`
    case 'base-untouched':
      return `nothing has been merged into ${doubt.base} since it was created`
    case 'base-created-from-it':
      return `base ${doubt.base} was created from it`
    case 'base-reflog-too-short':
      return `the reflog of base ${doubt.base} begins after it was merged`
    case 'reflog-unreadable':
      return `couldn't read the reflog of ${doubt.branch}: ${doubt.message}`
    case 'commits-of-others':
      return `${doubt.branch} came with commits of others, and nothing says which`
    case 'reflog-silent':
      return `the reflog of ${doubt.branch} doesn't show whether it had commits of its own`
    case 'failed':
      return doubt.message
    case 'remote-not-fetched':
    case 'base-not-local':
    case 'base-not-remote':
    case 'base-of-no-remote':
    case 'base-gone':
    case 'other-default-branch':
    case 'base-moved':
    case 'base-not-asked':
      return describeStaleBase(doubt)
  }
}

/** With a view, also how to fix it. */
export const describeStaleBase = (stale: StaleBase, view?: Pick<View, 'chat'>): string => {
  switch (stale.kind) {
    case 'remote-not-fetched':
      return `couldn't fetch ${stale.remote}`
    case 'base-not-local':
      return `base ${stale.base} is not a local branch`
    case 'base-not-remote':
      return `base ${stale.base} isn't a remote branch`
    case 'base-of-no-remote':
      return `${stale.base} isn't on any configured remote`
    case 'base-gone':
      return `${stale.remote} no longer has branch ${stale.branch}`
    case 'other-default-branch': {
      const { remote, head, branch } = stale
      const fix = `git remote set-head ${shellWord(remote)} --auto`
      const how = view === undefined ? '' : view.chat === true ? ` (on the server: \`${fix}\`)` : ` (${fix})`
      return `the default branch of ${remote} is ${head}, not ${branch}${how}`
    }
    case 'base-moved':
      return `${stale.base} is not what ${stale.remote} has now`
    case 'base-not-asked':
      return `couldn't ask ${stale.remote} for ${stale.base}`
  }
}

export const describeBranchNote = (note: BranchNote | string): string => {
  if (typeof note === 'string') return note
  switch (note.kind) {
    case 'merge-status':
      return describeMerged(note.merged, note.base)
    case 'stale-base':
      return `${describeStaleBase(note.why)}, so whether it is merged is unknown`
    case 'no-own-commits':
      return 'no commits of its own'
    case 'existed-before':
      return 'it existed before the worktree'
    case 'directory-missing':
      return 'its directory is missing'
    case 'moved':
      return 'it moved while its worktree was being removed'
    case 'not-judged':
      return 'it has commits that were not looked at'
    case 'gone':
      return `branch ${note.branch} was already gone`
    case 'checked-out':
      return `it is checked out in ${note.holder} now`
  }
}

/** "branch kept: 2 commits not on main" */
export const describeBranchOutcome = ({ deleted, note }: BranchOutcome): string =>
  `branch ${deleted ? 'deleted' : 'kept'}: ${describeBranchNote(note)}`

/** Shown in brackets after "was removed". */
export const describeRemovalReason = (reason: RemovalReason | string): string => {
  if (typeof reason === 'string') return reason
  switch (reason.kind) {
    case 'on-request':
      return reason.by === undefined ? 'on request' : `by ${reason.by}`
    case 'closed':
    case 'merged':
    case 'stale':
      return reason.kind
    case 'to-make-room':
      return 'merged, to make room'
    case 'with-its-fleet':
      return 'with its fleet'
    case 'replaced':
      return 'its directory was missing, and a new worktree was created'
    case 'repository-gone':
      return 'its repository is gone'
    case 'proven-merged':
      return describeMerged(reason.merged, reason.base)
    case 'idle-since':
      return `no activity since ${new Date(reason.at).toISOString().slice(0, 10)}`
  }
}

const short = (sha = ''): string => sha.slice(0, 7)

import type { GateAnswer } from '../../domain/removal/gates.ts'
import type { Fact, RepositoryWork } from '../../domain/removal/reason.ts'
import type { Unreachable, UnpushedCommits, UnpushedTip } from '../../domain/removal/unreachable.ts'
import { counted } from '../../domain/text/words.ts'

/** A reason, for programs. */
export type ReasonJson = Pick<GateAnswer, 'gate' | 'answer'> & { readonly detail: string }

export const reasonJson = (reason: GateAnswer): ReasonJson => ({
  gate: reason.gate,
  answer: reason.answer,
  detail: describeReason(reason),
})

export const describeReasons = (reasons: readonly GateAnswer[]): string => {
  const agents = reasons.flatMap(({ fact }) => (fact?.kind === 'agent' ? [`the fleet's agent ${fact.name}`] : []))
  // The agent is named already.
  const said = reasons.filter(({ fact }) => fact?.kind !== 'lease' || !agents.includes(fact.purpose))
  return [...new Set(said.map(describeReason))].join(', ')
}

export const describeReason = ({ fact }: Pick<GateAnswer, 'fact'>): string =>
  fact === undefined ? '' : describeFact(fact)

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
    case 'agent':
      return `the fleet's agent ${fact.name} is working in it`
    case 'lock':
      return `locked by another tool${fact.reason === '' ? '' : `: ${fact.reason}`}`
    case 'you':
      return 'you are inside it: leave it first'
    case 'process':
      return `process ${fact.pid} (${fact.command}) is inside it`
    case 'conversation':
      return `${fact.platform}:${fact.conversationId} is using it`
    case 'item':
      return `item ${fact.id} needs it until it is landed or closed`
    case 'crew':
      return `it belongs to ${fact.name} of the crew`
    case 'persistent':
      return 'it belongs to a chat whose worktrees are removed only by name'
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
      return `it contains a repository: ${fact.name} (${describeWork(fact.work)})`
    case 'not-in-commit':
      return `${fact.paths.length} ${fact.state} (${namedPaths(fact.paths)})`
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

const namedPaths = (paths: readonly string[]): string =>
  `${paths.slice(0, 5).join(', ')}${paths.length > 5 ? ', …' : ''}`

const describeWork = (work: RepositoryWork): string => {
  switch (work.kind) {
    case 'borrows-objects':
      return 'it borrows objects from another repository'
    case 'has-worktrees':
      return 'it has worktrees of its own'
    case 'partial-clone':
      return 'it is a partial clone'
    case 'operation':
      return inProgress(work.operation)
    case 'commits':
      return `${counted(work.count, 'commit')} on no remote`
    case 'changed':
      return `${counted(work.count, 'file')} changed`
    case 'untracked':
      return `${work.count} untracked`
    case 'ref':
      return `${work.ref} is on no remote`
    case 'name-not-utf8':
      return 'unknown: its name is not UTF-8'
    case 'copied-worktree':
      return 'unknown: it is a copy of a worktree'
    case 'too-many':
      return 'unknown: too many repositories to check'
    case 'leads-nowhere':
      return `unknown: ${work.path} leads nowhere`
    case 'unknown':
      return `unknown: ${work.message}`
    case 'inside':
      return `${work.name}: ${describeWork(work.work)}`
  }
}

const describeUnreachable = (lost: Unreachable): string => {
  switch (lost.kind) {
    case 'detached-head':
      return `${counted(lost.commits, 'commit')} on a detached HEAD that no branch has`
    case 'own-ref':
      return lost.commits === undefined
        ? `${lost.ref} holds an object that no tag has`
        : `${counted(lost.commits, 'commit')} in ${lost.ref} that no branch has`
    case 'clone-ref':
      return lost.ref === 'refs/stash'
        ? 'a stash that only this clone has'
        : lost.ref.startsWith('refs/')
          ? `${lost.ref} holds what only this clone has`
          : `an older stash that only this clone has: ${lost.ref}`
    case 'more-clone-refs':
      return `and ${counted(lost.count, 'more ref')} ${lost.count === 1 ? 'holds' : 'hold'} what only this clone has`
    case 'submodule-commits':
      return describeCommits(lost)
    case 'submodule-refs': {
      const { refs, submodule } = lost
      if (refs.length === 1) return `${refs.join()} in submodule ${submodule.name} was not pushed`
      const more = refs.length > 3 ? ', …' : ''
      return `${refs.length} refs in submodule ${submodule.name} were not pushed: ${refs.slice(0, 3).join(', ')}${more}`
    }
    case 'clone-worktrees':
      return `${counted(lost.worktrees.length, 'worktree')} made from this clone`
    case 'submodule-worktrees':
      return `submodule ${lost.submodule.name} has worktrees of its own`
  }
}

const describeCommits = ({
  commits,
  submodule: { name },
  tips,
  hasMoreTips,
  askedForTags,
}: UnpushedCommits): string => {
  const count = counted(commits, 'commit')
  const areAll = (at: UnpushedTip['at']): boolean => !hasMoreTips && tips.every((tip) => tip.at === at)
  const unasked = askedForTags === 'no-answer' ? ' (its remote did not answer without credentials)' : ''
  if (areAll('tag')) return `${count} that only tags in submodule ${name} have${unasked}`
  if (areAll('stash')) return `${count} that only the stash of submodule ${name} has`
  if (areAll('reflog')) return `${count} that only the reflog of submodule ${name} has`
  return `${count} in submodule ${name} that no remote has${unasked}`
}

/** A git operation: `a merge is in progress`. */
const inProgress = (operation: string): string => `${operation === 'am' ? 'an' : 'a'} ${operation} is in progress`

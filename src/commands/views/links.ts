import type { Notice } from '../../domain/notice.ts'
import type { RelatedBy } from '../../domain/related.ts'
import { shellWord } from '../../domain/text/shell-word.ts'
import { capitalized } from '../../domain/text/words.ts'
import { workLabel } from '../../domain/work.ts'
import { lastCommand, type View } from './view.ts'

type Speaker = Pick<View, 'commandText' | 'chat'>

export type LinkNotice = Extract<
  Notice,
  {
    kind:
      | 'reused'
      | 'link-recorded'
      | 'two-worktrees'
      | 'pushes-elsewhere'
      | 'link-not-followed'
      | 'untrusted-not-reused'
      | 'related'
  }
>

/** Which works share a worktree, and which could. */
export const describeLink = (notice: LinkNotice, view: Speaker): string => {
  switch (notice.kind) {
    case 'reused':
      return `Reusing worktree from ${workLabel(notice.work)}`
    case 'link-recorded':
      return `${capitalized(workLabel(notice.work))} shares this worktree from now on`
    case 'two-worktrees': {
      const { work, linked, branch, other } = notice
      const both = `${capitalized(workLabel(work))} and ${workLabel(linked)} belong together but have two worktrees`
      return `${both}, \`${branch}\` and \`${other}\`: ${toShare(other, view, `to continue in \`${other}\``)}`
    }
    case 'pushes-elsewhere': {
      const { prNumber, prBranch, branch, to } = notice
      const where = `The branch of PR #${prNumber} is \`${prBranch}\`, but this worktree is on \`${branch}\``
      if (to === undefined)
        return `${where}: a push from here can't update the PR, whose branch isn't known to be in this repository`
      if (to.remote === undefined) return `${where}: push to \`${prBranch}\` to update the PR`
      const push = `git push ${shellWord(to.remote)} ${shellWord(`HEAD:${prBranch}`)}`
      return `${where}. To update the PR from here: ${lastCommand(push, view)}`
    }
    case 'link-not-followed':
      return `This pull request names ${workLabel(notice.work)}, which has a worktree: ${toShare(notice.branch, view)}`
    case 'untrusted-not-reused':
      return `The worktree of ${workLabel(notice.work)} is not trusted, so it is not reused: ${toShare(notice.branch, view)}`
    case 'related':
      return `${whyRelated(notice.branch, notice.by)}: ${toShare(notice.branch, view)}`
  }
}

const whyRelated = (branch: string, by: RelatedBy): string => {
  switch (by.kind) {
    case 'number':
      return `Your message mentions ${workLabel(by.work)}, which has the worktree \`${branch}\``
    case 'branch':
      return `Your message mentions \`${branch}\`, which has a worktree`
    case 'title':
      return `Your message reads like the work in \`${branch}\``
    case 'commits':
      return `Commits on \`${branch}\` mention #${by.number}`
    case 'files':
      return `Commits on \`${branch}\` change ${by.files.length > 1 ? 'one of ' : ''}${by.files.map((file) => `\`${file}\``).join(', ')}`
  }
}

/** A chat links itself; a terminal must name the conversation. */
const toShare = (branch: string, { commandText, chat }: Speaker, purpose = 'to share it'): string => {
  const which = chat === true ? '' : ' --conversation <platform:id>'
  return `\`${commandText(`worktree link ${shellWord(branch)}${which}`)}\` ${purpose}`
}

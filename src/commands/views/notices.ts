import type {
  HeadNotFollowed,
  LeftAlone,
  NameTaken,
  NotCopied,
  Notice,
  SubmoduleNotFetched,
} from '../../domain/notice.ts'
import { describeLeftOut } from './left-out.ts'
import { describeRemedy } from './remedy.ts'
import { shellWord } from '../../domain/text/shell-word.ts'
import { workLabel } from '../../domain/work.ts'
import { counted, withFullStop } from '../../domain/text/words.ts'
import { describeDoubt } from './doubts.ts'
import { describeLink } from './links.ts'
import { describeStaleBase } from './merged.ts'
import { describeFact } from './reasons.ts'
import { lastCommand, type View } from './view.ts'

type Speaker = Pick<View, 'commandText' | 'chat'>

export const describeNotices = (notices: readonly Notice[], view: Speaker): string[] =>
  notices.map((notice) => describeNotice(notice, view))

/** A string is text already. */
export const inWords = (notice: Notice | string, view: Speaker): string =>
  typeof notice === 'string' ? notice : describeNotice(notice, view)

/** A notice as text, with this surface's commands. */
export const describeNotice = (notice: Notice, view: Speaker): string => {
  const last = (command: string): string => lastCommand(command, view)
  switch (notice.kind) {
    case 'not-fetched':
      return `couldn't fetch ${fetched(notice.of)}(${notice.why}): using the local copy`
    case 'tracking-ref-not-created': {
      const { remote, branch, blocker, why } = notice
      const what = `git can't create the tracking ref ${remote}/${branch}`
      return blocker === undefined
        ? `${what}: ${why}`
        : `${what} while ${blocker} exists. Run \`git remote prune ${shellWord(remote)}\`${onServer(view)}`
    }
    case 'base-ignored':
      return `branch ${notice.branch} already exists: using it as is, ignoring --base`
    case 'remote-branch-continued':
      return `branch ${notice.branch} exists on ${notice.remote}: continuing from there`
    case 'pr-branch-checked-out': {
      const { prBranch, holder, branch } = notice
      return `${prBranch} is checked out in ${holder}: working in ${branch}, which pushes to ${prBranch}`
    }
    case 'branches-diverged': {
      const { branch, local, remote, tracking } = notice
      return `local branch ${branch} (${short(local)}) and ${remote}/${branch} (${short(tracking)}) have diverged: keeping the local one as is`
    }
    case 'branch-renamed':
      return notice.seen
        ? `branch ${notice.from} was renamed to ${notice.to}: following it`
        : `branch ${notice.from} is gone and ${notice.to} is checked out instead: following that`
    case 'restored-as':
      return `branch ${nameTaken(notice.branch, notice.why)}: restored as ${notice.name}`
    case 'restored-apart':
      return `${workLabel(notice.work)} now uses ${notice.other}, so this worktree is restored as a separate task`
    case 'own-branch-restored':
      return `also restored branch ${notice.branch}`
    case 'own-branch-not-restored': {
      const { branch, tip, why } = notice
      const reason = why.kind === 'blocked' ? `it can't exist beside ${why.by}` : why.message
      return `branch ${branch} (${short(tip)}) was not restored: ${reason}`
    }
    case 'clone-branch-kept-as':
      return `${nameTaken(notice.branch, notice.why)}: the clone's branch is kept as ${notice.name}`
    case 'other-branches-saved':
      return `other branches of the missing clone are saved; to get them, remove this one and run ${view.commandText(`worktree restore ${shellWord(notice.point)}`)}`
    case 'reused':
    case 'link-recorded':
    case 'two-worktrees':
    case 'pushes-elsewhere':
    case 'link-not-followed':
    case 'untrusted-not-reused':
    case 'related':
      return describeLink(notice, view)
    case 'adopted':
      return `Adopted the worktree at ${notice.path} (branch \`${notice.branch}\`)`
    case 'adopted-untrusted':
      return `It is treated like a fork. ${ifTrusted(notice.branch, view)}`
    case 'treated-as-fork': {
      const { prNumber, branch, doubt } = notice
      const what = prNumber === undefined ? `\`${branch}\`` : `PR #${prNumber}`
      return `${what} is treated like a fork: ${describeDoubt(doubt)}. ${ifTrusted(branch, view)}`
    }
    case 'run-untrusted': {
      const { prNumber, head } = notice
      const name = view.chat === true ? '' : ' (name it with --pr-sha)'
      return head === undefined
        ? `This run is untrusted: the current head of PR #${prNumber} is unknown${name}`
        : `This run is untrusted: the worktree doesn't have the current head of PR #${prNumber}, ${short(head)}`
    }
    case 'not-vouched-any-more': {
      const { branch, why } = notice
      const what =
        why === 'untrusted-run'
          ? 'an untrusted run has worked in this worktree since you vouched for it, or you did so with an earlier version of Coppice'
          : 'this worktree has moved to another commit since you vouched for it'
      const trust = last(view.commandText(`worktree trust ${shellWord(branch)}`))
      return `This run is untrusted: ${what}. Review what is checked out, then run${onServer(view)}: ${trust}`
    }
    case 'room-made': {
      const lost = describeLeftOut(notice.leftOut)
      const without = lost.length === 0 ? '' : ` (not kept: ${lost.join(', ')})`
      return `Removed merged worktree \`${notice.branch}\` to make room${without}`
    }
    case 'worktree-moved': {
      const { branch, path, handedOver } = notice
      return handedOver
        ? `${branch} was moved to ${path}, outside the directories that Coppice manages: Coppice no longer manages it and won't delete it`
        : `${branch} was moved to ${path}: using it there`
    }
    case 'reviewing': {
      const { commit, prBranch } = notice
      return `Reviewing PR at commit \`${short(commit)}\`${prBranch === undefined ? '' : ` (branch: \`${prBranch}\`)`}`
    }
    case 'head-followed': {
      const { prNumber, how, from, to } = notice
      const moved = how === 'rewritten' ? 'was rewritten: moved' : 'moved: fast-forwarded'
      return `PR #${prNumber} ${moved} from \`${short(from)}\` to \`${short(to)}\``
    }
    case 'head-not-followed': {
      const { prNumber, head, at, why } = notice
      return `PR #${prNumber} is at \`${short(head)}\`, this worktree stays at \`${short(at)}\`: ${notFollowed(why, view)}`
    }
    case 'not-copied':
      return `Not copied: ${notice.path} ${notCopied(notice.why)}.`
    case 'not-linked':
      return `Not linked: ${notice.path} ${notLinked(notice.why)}.`
    case 'submodule-not-fetched':
      return withFullStop(`Submodule ${notice.path} was not fetched: ${notFetched(notice.why, view)}`)
    case 'no-issue-store':
      return `No ${notice.path}: ${notice.at} is not a real directory on this branch.`
    case 'other-issue-store':
      return `${notice.path} already exists and is unchanged; the shared store is ${notice.store}.`
    case 'scripts-not-for-forks':
      return `Setup and teardown don't run in worktrees of forks (worktree.allowForks of ${notice.codebase} is not set).`
    case 'scripts-not-approved': {
      const approve = last(view.commandText(`codebase trust ${shellWord(notice.codebase)}`))
      return `Setup and teardown of ${notice.codebase} didn't run: they need approval. Approve them${onServer(view)} with: ${approve}`
    }
    case 'left-running': {
      const { script, processes } = notice
      if (processes.length === 0)
        return `${script} left something running that keeps forking, so Coppice has no process ID for it`
      const names = processes.slice(0, 20).map(({ pid, command }) => `${command} (${pid})`)
      const more = processes.length > names.length ? [`${processes.length - names.length} more`] : []
      const count = counted(processes.length, 'process', 'processes')
      return `${script} left ${count} running: ${[...names, ...more].join(', ')}`
    }
    case 'processes-not-inspected': {
      const named = few(notice.processes.map(({ pid, command }) => `${pid} (${command})`))
      return notice.processes.length === 1
        ? `could not inspect process ${named}, which belongs to another user`
        : `could not inspect processes ${named}, which belong to other users`
    }
    case 'teardown-failed':
      return `teardown failed: ${notice.message}`
    case 'path-exists-again':
      return `${notice.path} exists again; it isn't Coppice's, so it was left alone`
    case 'record-still-there':
      return `git still has its record ${notice.record}`
    case 'not-restored':
      return `not restored: ${notice.left.path} (${notice.left.reason})`
    case 'recovered': {
      const { operation, name, saved, notSaved = [], leftAt } = notice
      const lost = notSaved.length === 0 ? '' : `. Not saved: ${describeLeftOut(notSaved).join(', ')}`
      const said = [
        ...(saved === undefined
          ? []
          : [`its changes are saved: ${last(view.commandText(`worktree restore ${shellWord(saved)}`))}${lost}`]),
        ...(leftAt === undefined
          ? []
          : [`it was left as it is: it was moved, or holds what can't be saved (${leftAt})`]),
      ]
      return `recovered from an interrupted ${operation} ${name}${said.length === 0 ? '' : ` (${said.join('; ')})`}`
    }
    case 'left-alone': {
      const { operation, name, why } = notice
      return `left alone: ${operation}${name === undefined ? '' : ` ${name}`}: ${leftAlone(why, view)}`
    }
    case 'not-recovered':
      return `couldn't recover ${notice.codebase}: ${notice.message}`
    case 'restore-points-not-expired':
      return `couldn't expire restore points: ${notice.message}`
    case 'forge-silent':
      return `${notice.forge ?? 'the code host'} didn't say which pull requests were merged (${notice.message}); what git can't prove is kept`
    case 'nothing-removed-as-merged': {
      const { why, message, branches } = notice
      const base = describeStaleBase(why, view)
      const stale = message === undefined ? base : `${base} (${message})`
      const looked = branches.length === 0 ? '' : `; ${branches.join(', ')} looked merged before`
      return `${stale}: nothing is removed as merged${looked}`
    }
  }
}

/** People in a chat may have no shell on the server, so a command for one says where to run it. */
const onServer = ({ chat }: Pick<View, 'chat'>): string => (chat === true ? ' on the server' : '')

/** Trust is given where the files can be reviewed, never in a chat. */
export const ifTrusted = (branch: string, view: Speaker): string =>
  `If you trust it${view.chat === true ? ', run on the server' : ''}: ${lastCommand(view.commandText(`worktree trust ${shellWord(branch)}`), view)}`

const fetched = (of: Extract<Notice, { kind: 'not-fetched' }>['of']): string =>
  of === undefined ? '' : 'branch' in of ? `${of.branch} ` : `PR #${of.pullRequest} `

const nameTaken = (branch: string, why: NameTaken): string => {
  switch (why.kind) {
    case 'moved':
      return `${branch} is now at ${short(why.to)}`
    case 'checked-out':
      return `${branch} is checked out ${why.holder === undefined ? 'elsewhere' : `in ${why.holder}`}`
    case 'other-commits':
      return `${branch} has other commits in the repository`
    case 'not-its-own':
      return `${branch} belongs to the repository`
    case 'means-something-else':
      return `${branch} means something else in the repository`
    case 'renamed':
      return `${why.from ?? 'it'} was renamed in the clone`
    case 'blocked':
      return `${branch} can't exist beside ${why.by}`
  }
}

const notFollowed = (why: HeadNotFollowed, view: Speaker): string => {
  switch (why.kind) {
    case 'own-commits':
      return "it has commits that the PR doesn't have"
    case 'diverged':
      return 'the two have diverged'
    case 'committed-meanwhile':
      return 'somebody committed there meanwhile'
    case 'unknown-pull-request':
      return "this worktree's pull request isn't known"
    case 'in-the-way':
      return `it would overwrite or delete ${few(why.paths)}`
    case 'other-branch':
      return `it is on ${why.branch ?? 'no branch'}`
    case 'not-on-branch':
      return `that commit is not on ${why.remote}/${why.branch}`
    case 'not-vouched': {
      const steps = [
        `git merge --ff-only ${short(why.commit)}`,
        view.commandText(`worktree trust ${shellWord(why.branch)}`),
      ]
      const merge = lastCommand(steps.join(' && '), view)
      return `nobody has vouched for that commit. Review it, then move the worktree yourself${onServer(view)} and vouch for it: ${merge}`
    }
    case 'shared':
      return `it is the worktree of ${workLabel(why.work)}`
    case 'adopted':
      return "Coppice didn't create it, so it doesn't move it"
    case 'facts':
      return why.facts.map(describeFact).join(', ')
    case 'failed':
      return why.message
  }
}

const notCopied = (why: NotCopied): string => {
  switch (why.kind) {
    case 'name-not-utf8':
      return 'has a name that is not UTF-8'
    case 'no-file':
      return 'is neither a file nor a link'
    case 'leads-out':
      return 'is a link that leads out'
    case 'not-real':
      return throughNoDirectory(why.at)
    case 'unreadable':
      return "can't be read"
    case 'unreadable-directory':
      return `in ${why.source} can't be read`
    case 'not-regular':
      return 'is not a regular file'
    case 'gone':
      return 'went away meanwhile'
  }
}

const notLinked = (why: Extract<Notice, { kind: 'not-linked' }>['why']): string => {
  switch (why.kind) {
    case 'tracked':
      return 'is tracked by git on this branch'
    case 'exists':
      return 'already exists'
    case 'not-real':
      return throughNoDirectory(why.at)
  }
}

const throughNoDirectory = (at: string): string => `would go through ${at}, which is not a real directory`

const notFetched = (why: SubmoduleNotFetched, view: Speaker): string => {
  switch (why.kind) {
    case 'has-files':
      return 'there are files in its directory'
    case 'something-else':
      return 'something else is in its place'
    case 'repository-there':
      return view.chat === true
        ? 'its repository is still there. Tell the agent to run `git submodule update`'
        : 'its repository is still there. Check it out yourself: git submodule update'
    case 'not-in-base':
      return 'the base branch has none there'
    case 'other-address':
      return "its address differs from the base branch's"
    case 'not-plain-https':
      return 'only https addresses without credentials are fetched for work that is not trusted'
    case 'needs-credentials':
      return `it cannot be fetched without credentials: ${why.message}`
  }
}

export const leftAlone = (why: LeftAlone, view: Speaker): string => {
  switch (why.kind) {
    case 'unknown-holder':
      return `cannot tell whether process ${why.pid} still runs`
    case 'git-running':
      return 'another git process is using the repository'
    case 'setup-running':
      return 'a process that its setup started is still running'
    case 'changed-meanwhile':
      return 'it changed while it was being undone'
    case 'facts':
      return why.facts.map(describeFact).join(', ')
    case 'in-trash':
      return `its files are in ${why.trash}, because something else is at ${why.path}; move that away`
    case 'failed':
      return why.remedy === undefined ? why.message : `${why.message} (${describeRemedy(why.remedy, view)})`
  }
}

const few = (names: readonly string[]): string =>
  names.length > 5 ? `${names.slice(0, 5).join(', ')} and ${names.length - 5} more` : names.join(', ')

const short = (sha: string): string => sha.slice(0, 7)

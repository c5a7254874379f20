import type { NotPublished, OpenedPullRequest, Rejection } from '../../domain/forge/publishing.ts'
import { shellWord } from '../../domain/text/shell-word.ts'
import { counted, withFullStop } from '../../domain/text/words.ts'
import type { Publication, Published } from '../../isolation/publish/publish.ts'
import { shellPath } from '../views/shell.ts'
import { code, lastCommand, printable, type View } from '../views/view.ts'

/** What was pushed and opened, or why not and what to do. For the command, and for runs that publish by themselves. */
export const publicationText = (publication: Publication, view: View): string => {
  if (publication.outcome === 'not-published') {
    const { what, todo } = notPublishedTexts(publication, view)
    return [withFullStop(what), ...(todo === undefined ? [] : [todo])].join('\n')
  }
  const { opened, uncommitted, foundIn, compareUrl } = publication
  const problem = openProblem(opened)
  return [
    headline(publication, view),
    ...(problem === undefined ? [] : [withFullStop(problem.what), ...problem.todo]),
    ...(compareUrl === undefined ? [] : [`Open the pull request: ${compareUrl}`]),
    ...(opened.outcome === 'no-forge' && compareUrl === undefined
      ? ['No pull request was opened: Coppice can only do that on GitHub, with a token or an app.']
      : []),
    ...(uncommitted === 0
      ? []
      : [`${counted(uncommitted, 'file')} with uncommitted changes ${uncommitted === 1 ? 'was' : 'were'} not pushed.`]),
    ...(foundIn === undefined
      ? []
      : [`Messages on the pull request go to ${code(foundIn.branch, view)}, which was made for it.`]),
  ].join('\n')
}

const headline = ({ opened, change, branch, remote, base, commits }: Published, view: View): string => {
  const name = code(branch, view)
  const pushed =
    change === 'none' ? `${name} is up to date on ${remote}` : `${view.paint('green', 'Pushed')} ${name} to ${remote}`
  if (!('pullRequest' in opened)) return `${pushed}: ${counted(commits, 'commit')} not in ${code(base, view)}.`
  const { number, url, draft } = opened.pullRequest
  const what = `${draft ? 'draft ' : ''}pull request #${number}`
  return opened.outcome === 'opened'
    ? `${view.paint('green', 'Opened')} ${what}: ${url}`
    : `${pushed}; ${what} is already open: ${url}`
}

/** Why there is no pull request although the branch was pushed. */
export const openProblem = (
  opened: OpenedPullRequest,
): { readonly what: string; readonly todo: readonly string[] } | undefined => {
  if (opened.outcome === 'unreachable') {
    return {
      what: `Couldn't reach ${opened.forge} to open a pull request: ${oneLine(opened.said)}`,
      todo: ['The branch is pushed. Try again later.'],
    }
  }
  if (opened.outcome !== 'refused') return undefined
  const what = `${opened.forge} didn't open a pull request: ${oneLine(opened.said)}`
  switch (opened.why) {
    case 'permission':
      return {
        what,
        todo: [`The token or app needs the permission "Pull requests: read and write" on this repository.`],
      }
    case 'no-difference':
      return { what, todo: [] }
    case 'other':
      return { what, todo: [] }
  }
}

type NotPublishedTexts = { readonly what: string; readonly todo: string | undefined }

export const notPublishedTexts = (
  { environment, why }: Extract<Publication, { outcome: 'not-published' }>,
  view: View,
): NotPublishedTexts => {
  const branch = code(environment.branch, view)
  const command = (text: string): string => lastCommand(text, view)
  switch (why.kind) {
    case 'no-remote':
      return { what: "The repository has no remote, so there's nowhere to push to", todo: undefined }
    case 'untrusted':
      return {
        what: `${branch} wasn't pushed: it's from a fork or of unknown origin, and nobody has vouched for its current content`,
        todo: `Review it, then run on the server: ${command(`coppice worktree trust ${shellWord(environment.branch)}`)}`,
      }
    case 'is-base':
      return {
        what: `${branch} wasn't pushed: ${code(why.base, view)} is the base branch`,
        todo: `Continue on a branch of its own: ${command(view.commandText('worktree create <branch>'))}`,
      }
    case 'other-branch':
      return {
        what: `${branch} wasn't pushed: ${why.head === undefined ? 'no branch' : `another branch (${code(why.head, view)})`} is checked out in its worktree`,
        todo: switchBack(environment, view),
      }
    case 'no-commits':
      return {
        what: `${branch} has no commits that ${code(why.base, view)} doesn't have`,
        todo:
          why.uncommitted === 0
            ? undefined
            : `${counted(why.uncommitted, 'file')} ${why.uncommitted === 1 ? 'has' : 'have'} uncommitted changes: commit them, or ask the agent to, and try again.`,
      }
    case 'remote-changed':
      return {
        what: `${branch} wasn't pushed: the remote's address changed from ${code(why.from, view)} to ${code(why.to, view)}`,
        todo: 'If you changed it, run any coppice command in the repository on the server. If not, an agent may have.',
      }
    case 'rejected':
      return rejected(why, environment.branch, view)
    case 'no-access':
      return {
        what: `No write access to the remote: ${oneLine(why.said)}`,
        todo: 'Set GITHUB_TOKEN, or install the GitHub App on the repository, with "Contents: read and write". Over ssh, the key of the user who runs Coppice needs write access.',
      }
    case 'not-there':
      return {
        what: `The remote accepted the push of ${code(why.branch, view)}, but ${why.found === undefined ? 'has no such branch' : `has ${why.found.slice(0, 7)} there`}`,
        todo: 'Check what else changes that branch on the remote, and try again.',
      }
    case 'unreachable':
      return { what: `Couldn't push: ${oneLine(why.said)}`, todo: 'Nothing was changed. Try again later.' }
  }
}

const rejected = (
  { why, said, fetched }: Extract<NotPublished, { kind: 'rejected' }>,
  branch: string,
  view: View,
): NotPublishedTexts => {
  if (why === 'behind') {
    const merge = fetched ? 'It has been fetched: merge' : 'Fetch and merge'
    return {
      what: `${code(branch, view)} wasn't pushed: the remote has commits on it that aren't here`,
      todo: `${merge} it into the worktree (or ask the agent to), and try again. Coppice never pushes by force.`,
    }
  }
  return { what: `The remote rejected ${code(branch, view)}: ${oneLine(said)}`, todo: todos[why] }
}

const todos: Readonly<Record<Exclude<Rejection, 'behind'>, string | undefined>> = {
  workflows: 'The token or app needs the permission "Workflows: read and write" to change files in .github/workflows.',
  secrets: "Remove the secret from the branch's commits, and revoke it if it is real.",
  'large-files': "Remove the large file from the branch's commits, or use Git LFS.",
  lfs: 'Upload the Git LFS files first: git lfs push --all <remote> <branch>, in the worktree.',
  protected: "The repository's rules protect this branch. Allow the token or app to push to it, or use another branch.",
  other: undefined,
}

const switchBack = ({ path, branch }: Published['environment'], view: View): string =>
  view.chat === true
    ? `Ask the agent to switch back to ${code(branch, view)}, with the commits that belong there.`
    : `Switch back: git -C ${shellPath(path, view)} switch ${shellWord(branch)}`

/** A remote's message may have any number of lines. */
const oneLine = (text: string): string => printable(text).replaceAll(/\s+/g, ' ').trim().slice(0, 400)

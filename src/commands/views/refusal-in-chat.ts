import type { IsolatedEnvironment } from '../../domain/environment.ts'
import type { Fact } from '../../domain/removal/reason.ts'
import { shellWord } from '../../domain/text/shell-word.ts'
import type { Way } from './keep-commits.ts'
import { code, plain } from './view.ts'

export type RefusalInChat = {
  readonly environment: Pick<IsolatedEnvironment, 'branch'>
  readonly codebase: string
  /** --force was already given. */
  readonly forced: boolean
  /** The worktree is the asking conversation's own. */
  readonly isCurrent?: boolean
  /** The `git push` command to run there; undefined without a remote. */
  readonly push: string | undefined
}

/**
 * The ways out for a reader without a shell on the server: what the agent in the worktree can do when told to, and the
 * command with which whoever runs the server gets the rest.
 */
export const waysInChat = (
  { environment, codebase, forced, isCurrent, push }: RefusalInChat,
  facts: readonly Fact[],
): Way[] => {
  const branch = shellWord(environment.branch)
  const there = isCurrent === true ? '' : `${shown(`/worktree link ${branch}`)}, then `
  const tell = (title: string, what: string): Way => ({
    title,
    how: `${there}tell the agent to ${what}`,
    isSentence: true,
  })
  const asked = facts.flatMap((fact) => requestsTo(fact, push !== undefined))
  // Several facts may have one answer: changed and untracked files are committed together.
  const requests = [...new Map(asked.map((request) => [request.title, request])).values()]
  const flags = `${forced ? ' --force' : ''} --codebase ${shellWord(codebase)}`
  const list = shown(`coppice worktree remove ${branch}${flags}`)
  return [
    ...(isCurrent === true && facts.some(({ kind }) => kind === 'process')
      ? [{ title: 'Stop the process', how: '`/stop`, if the agent started it', isSentence: true } as const]
      : []),
    ...requests.map(({ title, what }) => tell(title, what)),
    ...(facts.some(needsServer)
      ? [{ title: 'Ask whoever runs the server', how: `${list} there lists the commands`, isSentence: true } as const]
      : []),
  ]
}

type Request = { readonly title: string; readonly what: string }

/** What git can settle in the worktree itself. */
const requestsTo = (fact: Fact, canPush: boolean): Request[] => {
  switch (fact.kind) {
    case 'changed':
    case 'untracked':
      return filesRequests(canPush)
    case 'submodule':
      return fact.problem === 'is at another commit' ? filesRequests(canPush) : [submoduleRequests[fact.problem]]
    case 'hidden':
      return [{ title: 'Show the changes to git', what: 'clear assume-unchanged and skip-worktree' }]
    case 'operation':
      return [{ title: `Abort the ${fact.operation}`, what: 'abort or finish it' }]
    case 'detached-head':
      return [{ title: 'Keep the commits', what: 'put them on a branch' }]
    case 'own-ref':
      return [{ title: `Keep ${fact.ref}`, what: 'tag what it points to' }]
    case 'submodule-commits':
    case 'submodule-refs':
      return [{ title: "Push the submodule's commits", what: 'push them' }]
    case 'repository-inside':
      return [{ title: 'Keep the repository', what: 'push its commits' }]
    default:
      return []
  }
}

const submoduleRequests = {
  'has changes': { title: 'Commit in the submodule', what: 'commit and push there, or to discard the changes' },
  'has files but no .git': { title: "Move the submodule's files out", what: 'move them to another directory' },
} as const

const filesRequests = (canPush: boolean): Request[] => [
  canPush
    ? { title: 'Commit and push', what: 'commit and push its work' }
    : { title: 'Commit', what: 'commit its work' },
  { title: 'Discard changes', what: 'discard its changes' },
]

/** Outside the worktree, or of other tools and people. */
const needsServer = ({ kind }: Fact): boolean =>
  kind === 'mount' ||
  kind === 'worktree-inside' ||
  kind === 'repository-inside' ||
  kind === 'lock' ||
  kind === 'process' ||
  kind === 'you' ||
  kind === 'kept-file' ||
  kind === 'clone-ref' ||
  kind === 'more-clone-refs' ||
  kind === 'submodule-worktrees' ||
  kind === 'clone-worktrees'

const shown = (command: string): string => code(command, { chat: true, paint: plain })

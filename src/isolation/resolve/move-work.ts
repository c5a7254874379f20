import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import type { IsolationHints } from '../../domain/hints.ts'
import { coppice, remedy } from '../../domain/remedy.ts'
import { isOwnMessage, mayServe } from '../../domain/trust.ts'
import type { Work } from '../../domain/work.ts'
import type { Store } from '../../store/store.ts'
import { determineOrigin } from '../codebases/pull-request-origin.ts'
import type { IsolationContext } from '../context.ts'

/** What a link made by hand means for the issue or pull request that the conversation is about. */
export type LinkedWork = { readonly work: Work } & (
  | { readonly outcome: 'moved'; readonly from: IsolatedEnvironment | undefined }
  | { readonly outcome: 'already-there' }
  /** The conversation moves, but the work is still found where it was. */
  | { readonly outcome: 'kept'; readonly why: 'untrusted-worktree' | 'unproven-pull-request' }
)

/** A work, and whether messages about it are the repository's own. Asks the remote about a pull request. */
export type WorkToMove = { readonly work: Work; readonly ownMessage: boolean }

export const workToMove = async (
  context: IsolationContext,
  codebase: Codebase,
  work: Work,
  given: IsolationHints,
  signal: AbortSignal,
): Promise<WorkToMove> => {
  const { hints } = await determineOrigin(context, codebase, work, given, signal)
  return { work, ownMessage: isOwnMessage(work, hints) }
}

/**
 * Inside the transaction that links the conversation, so that both happen or neither. Nobody's word makes a stranger's
 * pull request findable in a worktree with our files, nor our own work in a stranger's worktree.
 */
export const moveWork = async (
  store: Store,
  { work, ownMessage }: WorkToMove,
  environmentId: IsolatedEnvironment['id'],
  now: number,
): Promise<LinkedWork> => {
  const environment = await store.environments.get(environmentId)
  if (environment === undefined) throw gone()
  if (!mayServe(environment, work, ownMessage)) {
    const why = ownMessage ? 'untrusted-worktree' : 'unproven-pull-request'
    return { work, outcome: 'kept', why }
  }
  const moved = await store.environments.moveWork(environmentId, environment.codebaseId, work, now)
  if (moved.outcome === 'gone') throw gone()
  return { work, ...moved }
}

const gone = (): AppError =>
  new AppError('not-found', 'that worktree was removed meanwhile', {
    remedy: remedy`run ${coppice('worktree list')} for a list`,
  })

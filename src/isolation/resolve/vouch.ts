import { isForPullRequest, type IsolatedEnvironment } from '../../domain/environment.ts'
import type { Notice } from '../../domain/notice.ts'
import { isOwnMessage, wasVouchedFor } from '../../domain/trust.ts'
import type { IsolationContext } from '../context.ts'
import type { FollowedHead } from '../provider.ts'
import { providerOf } from '../provider-of.ts'
import type { RequestWithOrigin } from './resolution.ts'

export type Vouch = {
  /** The checkout is what a person vouched for. Also true if nobody had to. */
  readonly holds: boolean
  /** Vouching for a pull request's worktree also covers messages about it, until its head moves. */
  readonly covers: boolean
  readonly notices: readonly Notice[]
}

/** Whether a person's word covers this message in that environment. */
export const vouchOf = async (
  context: IsolationContext,
  { codebase, work, hints, signal }: RequestWithOrigin,
  environment: IsolatedEnvironment,
  moved: FollowedHead,
): Promise<Vouch> => {
  const { trust, branch } = environment
  if (!wasVouchedFor(trust)) return { holds: true, covers: false, notices: [] }
  const provider = await providerOf(context, environment)
  const holds = trust === 'vouched' && (await provider.isVouched(context, codebase, environment, { signal }))
  const asksForHead = !isOwnMessage(work, hints) && isForPullRequest(environment, work)
  const covers = holds && asksForHead && moved.current
  if (covers || (holds && !asksForHead) || moved.notices.length > 0) return { holds, covers, notices: [] }
  const notice: Notice = holds
    ? { kind: 'run-untrusted', prNumber: work.id, head: hints.prSha }
    : { kind: 'not-vouched-any-more', branch, why: trust === 'lapsed' ? 'untrusted-run' : 'other-commit' }
  return { holds, covers, notices: [notice] }
}

import { type IsolatedEnvironment, isForPullRequest } from '../../domain/environment.ts'
import { isSha } from '../../domain/names.ts'
import type { Notice } from '../../domain/notice.ts'
import type { FollowedHead } from '../provider.ts'
import type { ResolveRequest } from './resolution.ts'

/** For a conversation that is new here: which commit of the pull request it sees. Creating one says so itself. */
export const headNotices = (
  { work, hints: { prSha, prBranch } }: Pick<ResolveRequest, 'work' | 'hints'>,
  environment: IsolatedEnvironment,
  { at, notices }: FollowedHead,
): Notice[] => {
  if (at === undefined || prSha === undefined || !isSha(prSha)) return []
  if (at === prSha) return [{ kind: 'reviewing', commit: at, prBranch }]
  if (notices.length > 0) return []
  const isOwn = isForPullRequest(environment, work)
  const why = isOwn ? ({ kind: 'adopted' } as const) : ({ kind: 'shared', work: environment.work } as const)
  return [{ kind: 'head-not-followed', prNumber: Number(work.id), head: prSha, at, why }]
}

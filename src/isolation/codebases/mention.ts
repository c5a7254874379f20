import type { Codebase } from '../../domain/environment.ts'
import type { Notice } from '../../domain/notice.ts'
import { isTrusted } from '../../domain/trust.ts'
import { type Work, isNumbered, sameWork } from '../../domain/work.ts'
import { commitsMentioning } from '../../git/history.ts'
import { baseAndConfig } from './base-and-config.ts'
import type { IsolationContext } from '../context.ts'
import { repoOf } from './repo-of.ts'

/** For new numbered work: looks once for commits on other environments' branches that already mention it. */
export const offerMention = async (context: IsolationContext, codebase: Codebase, work: Work): Promise<Notice[]> => {
  if (!isNumbered(work.type)) return []
  try {
    const live = await context.store.environments.live(codebase.id)
    const others = live.filter(
      (other) => other.status === 'active' && isTrusted(other.trust) && !sameWork(other.work, work),
    )
    if (others.length === 0) return []
    const { base } = await baseAndConfig(context, codebase)
    const branches = others.map((other) => other.branch)
    const options = { except: [base.sha] }
    const [first] = await commitsMentioning(context.git, repoOf(codebase), branches, `#${work.id}`, options)
    return first === undefined ? [] : [{ kind: 'mentioned-on-branch', branch: first, number: work.id }]
  } catch (error) {
    // Optional: the environment is created even if history can't be read.
    context.log.warn('history could not be searched for mentions', { error: String(error) })
    return []
  }
}

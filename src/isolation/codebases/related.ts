import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import type { Notice } from '../../domain/notice.ts'
import { type Candidate, fileNamesIn, type Related, relatedIn } from '../../domain/related.ts'
import { isOwnMessage, isTrusted } from '../../domain/trust.ts'
import { type Work, isNumbered, sameWork } from '../../domain/work.ts'
import { commitsChanging, commitsMentioning } from '../../git/history.ts'
import { baseAndConfig } from './base-and-config.ts'
import type { Base } from './base-branch.ts'
import type { IsolationContext } from '../context.ts'
import type { IsolationRequest } from '../provider.ts'
import { repoOf } from './repo-of.ts'

/**
 * For new work: looks once for an environment that it may belong to. By what its first message says, which only asks
 * the database; then, for numbered work, by commits that mention the number; then by files that the message names.
 * `usual`: the codebase's base, if the caller knows it.
 */
export const offerRelated = async (
  context: IsolationContext,
  { codebase, work, hints, firstMessage }: Pick<IsolationRequest, 'codebase' | 'work' | 'hints' | 'firstMessage'>,
  usual: Base | undefined,
): Promise<Notice[]> => {
  // One word would lead a stranger's pull request into a worktree of ours.
  if (!isOwnMessage(work, hints)) return []
  if (!isNumbered(work.type) && firstMessage === undefined) return []
  try {
    const live = await context.store.environments.live(codebase.id)
    const others = live.filter(
      (other) => other.status === 'active' && isTrusted(other.trust) && !sameWork(other.work, work),
    )
    if (others.length === 0) return []
    const related =
      firstMessage === undefined
        ? undefined
        : relatedIn(firstMessage, await candidatesOf(context, others), codebase.github)
    if (related === 'several') return []
    const found = related ?? (await inHistory(context, codebase, { work, others, firstMessage, usual }))
    return found === undefined
      ? []
      : [{ kind: 'related', environmentId: found.environment.id, branch: found.environment.branch, by: found.by }]
  } catch (error) {
    // Optional: the environment is created even if history can't be read.
    context.log.warn('related work could not be searched for', { error: String(error) })
    return []
  }
}

/** Three statements, however many there are. */
const candidatesOf = async (
  { store }: Pick<IsolationContext, 'store'>,
  environments: readonly IsolatedEnvironment[],
): Promise<Candidate[]> => {
  const ids = environments.map(({ id }) => id)
  const aliases = await store.environments.aliasesOf(ids)
  const conversations = await store.conversations.ofEnvironments(ids)
  const texts = await store.inbox.firstTexts(conversations)
  return environments.map((environment) => {
    const { id, work, branch } = environment
    const spoken = texts.filter(({ platform, conversationId }) =>
      conversations.some(
        (one) => one.environmentId === id && one.platform === platform && one.conversationId === conversationId,
      ),
    )
    return {
      environment,
      works: [work, ...(aliases.get(id) ?? [])],
      titles: [
        // A long task's ID was cut and ends with a hash.
        ...(work.type === 'task' ? [work.id.replace(/-[0-9a-f]{8}$/, '')] : []),
        ...(work.type === 'pr' ? [branch] : []),
        ...spoken.flatMap(({ text, title = '' }) => [title, text.split('\n', 1)[0] ?? '']),
      ],
    }
  })
}

type Search = {
  readonly work: Work
  readonly others: readonly IsolatedEnvironment[]
  readonly firstMessage: string | undefined
  readonly usual: Base | undefined
}

/** At most two processes, one each. */
const inHistory = async (
  context: IsolationContext,
  codebase: Codebase,
  { work, others, firstMessage = '', usual }: Search,
): Promise<Related | undefined> => {
  const files = fileNamesIn(firstMessage)
  if (!isNumbered(work.type) && files.length === 0) return undefined
  const base = usual ?? (await baseAndConfig(context, codebase)).base
  const branches = others.map((other) => other.branch)
  const [repo, options] = [repoOf(codebase), { except: [base.sha] }] as const
  const on = (branch: string | undefined) => others.find((other) => other.branch === branch)
  if (isNumbered(work.type)) {
    const [first] = await commitsMentioning(context.git, repo, branches, `#${work.id}`, options)
    const environment = on(first)
    if (environment !== undefined) return { environment, by: { kind: 'commits', number: work.id } }
  }
  if (files.length === 0) return undefined
  const [only, another] = await commitsChanging(context.git, repo, branches, files, options)
  const environment = another === undefined ? on(only) : undefined
  return environment && { environment, by: { kind: 'files', files } }
}

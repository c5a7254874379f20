/*
 * Issues on GitHub. In: a repository and which of its issues. Out: issues, without pull requests, which GitHub's API
 * lists among them. Also without credentials.
 */
import { RequestError } from 'octokit'
import { z } from 'zod'
import type { Clock } from '../../../domain/clock.ts'
import type { Codebase } from '../../../domain/environment.ts'
import type { ForgeIssue, ForgeProblem, FoundIssues, IssueQuery, NumberedIssues } from '../../../domain/forge/issues.ts'
import { FORGE } from '../conversation-id.ts'
import { failureOf } from '../failure.ts'
import { type Repository, repositoryAt, repositoryThere } from '../host.ts'
import { visible } from '../markdown/visible.ts'
import { noRetries, type Octokits } from '../octokits.ts'

export type IssueParts = {
  readonly octokits: () => Promise<Pick<Octokits, 'of'>>
  readonly apiUrl: string | undefined
  readonly clock: Clock
  readonly anonymous: boolean
}

type Cancellable = { readonly signal?: AbortSignal | undefined }

const PAGE = 100
/** 100,000 issues. */
const MOST_PAGES = 1_000

export const findIssues = async (
  parts: IssueParts,
  codebase: Codebase,
  query: IssueQuery,
  { signal }: Cancellable = {},
): Promise<FoundIssues> => {
  const repository = issuesOf(codebase, parts.apiUrl)
  if (repository === undefined) return { outcome: 'no-forge' }
  const { limit = Infinity } = query
  const found = new Map<number, ForgeIssue>()
  try {
    const octokit = await (await parts.octokits()).of(repository)
    let more = true
    for (let page = 1; more && page <= MOST_PAGES; page++) {
      const { data, headers } = await octokit.rest.issues.listForRepo({
        ...repository,
        ...parameters(query),
        page,
        request: { ...noRetries, ...(signal && { signal }) },
      })
      for (const given of z.array(answered).parse(data)) {
        const issue = toIssue(given)
        if (issue !== undefined && hasLabels(issue, query.labels)) found.set(issue.number, issue)
      }
      more = /rel="next"/.test(headers.link ?? '')
      if (found.size > limit) break
    }
    const issues = [...found.values()]
    const name = `${repository.owner}/${repository.repo}`
    const few = issues.slice(0, limit)
    return { outcome: 'found', repository: name, issues: few, more: more || issues.length > few.length }
  } catch (error) {
    if (signal?.aborted === true) throw error
    return problemOf(error, parts)
  }
}

export const issuesNumbered = async (
  parts: IssueParts,
  codebase: Codebase,
  numbers: readonly number[],
  { signal }: Cancellable = {},
): Promise<NumberedIssues> => {
  const repository = issuesOf(codebase, parts.apiUrl)
  if (repository === undefined) return { outcome: 'no-forge' }
  const issues: ForgeIssue[] = []
  for (const number of numbers) {
    try {
      const octokit = await (await parts.octokits()).of(repository)
      const issue = toIssue(await issueNumbered(octokit, repository, number, signal))
      // One that was moved to another repository has another number there.
      if (issue?.number === number) issues.push(issue)
    } catch (error) {
      if (signal?.aborted === true) throw error
      const problem = problemOf(error, parts)
      const isGone = problem.outcome === 'refused' && problem.why === 'not-found'
      if (!isGone) return { outcome: 'found', issues, problem }
    }
  }
  return { outcome: 'found', issues }
}

type Octokit = Awaited<ReturnType<Octokits['of']>>

export const issueNumbered = async (
  octokit: Octokit,
  repository: Repository,
  number: number,
  signal: AbortSignal | undefined,
): Promise<AnsweredIssue> => {
  const request = { ...noRetries, ...(signal && { signal }) }
  return answered.parse((await octokit.rest.issues.get({ ...repository, issue_number: number, request })).data)
}

/** One whose remote shows it, if nobody has named another. */
export const issuesOf = (codebase: Codebase, apiUrl: string | undefined): Repository | undefined =>
  codebase.github === undefined ? repositoryAt(codebase.remoteUrl, apiUrl) : repositoryThere(codebase, apiUrl)

/** Oldest first: what is opened meanwhile is on the last page. */
const parameters = ({ labels, state }: IssueQuery) => {
  // The API separates names with commas, and a name may have one. What it doesn't filter, we do.
  const plain = labels.filter((label) => !label.includes(','))
  const sort = { sort: 'created', direction: 'asc', per_page: PAGE } as const
  return { state, ...sort, ...(plain.length > 0 && { labels: plain.join(',') }) }
}

/** Names of labels differ in more than case. */
const hasLabels = ({ labels }: ForgeIssue, wanted: readonly string[]): boolean => {
  const own = new Set(labels.map((label) => label.toLowerCase()))
  return wanted.every((label) => own.has(label.toLowerCase()))
}

const answered = z.object({
  number: z.number().int().positive(),
  title: z.string(),
  body: z.string().nullish(),
  state: z.string(),
  labels: z.array(z.union([z.string(), z.object({ name: z.string().nullish() })])).nullish(),
  pull_request: z.unknown().optional(),
})

export type AnsweredIssue = z.infer<typeof answered>

const toIssue = ({ number, title, body, state, labels, pull_request }: AnsweredIssue): ForgeIssue | undefined =>
  pull_request === undefined || pull_request === null
    ? {
        number,
        title,
        body: visible(body ?? ''),
        labels: (labels ?? []).flatMap((label) => (typeof label === 'string' ? label : (label.name ?? []))),
        open: state === 'open',
      }
    : undefined

export const problemOf = (
  error: unknown,
  { clock, anonymous }: Pick<IssueParts, 'clock' | 'anonymous'>,
): ForgeProblem => {
  const { kind, message, retryAfterMs = 0 } = failureOf(error, clock)
  const said = (message.split('\n')[0] ?? '').slice(0, 200)
  switch (kind) {
    case 'limited':
      return { outcome: 'limited', forge: FORGE, anonymous, until: clock() + retryAfterMs }
    case 'away':
      return { outcome: 'unreachable', forge: FORGE, said }
    case 'missing':
      return { outcome: 'refused', forge: FORGE, why: 'not-found', anonymous, said }
    case 'unauthorized':
      return { outcome: 'refused', forge: FORGE, why: 'permission', anonymous, said }
    case 'refused': {
      const why = error instanceof RequestError && error.status === 403 ? 'permission' : 'other'
      return { outcome: 'refused', forge: FORGE, why, anonymous, said }
    }
  }
}

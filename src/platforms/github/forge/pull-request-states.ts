/*
 * Whether pull requests are open, merged or closed. In: their numbers. Out: the state of each that GitHub could say
 * something about, in one request for many.
 */
import { z } from 'zod'
import type { Clock } from '../../../domain/clock.ts'
import type { Codebase } from '../../../domain/environment.ts'
import type { PullRequestState } from '../../../domain/forge/publishing.ts'
import { isSha, toSha } from '../../../domain/names.ts'
import type { PullRequestStates } from '../../../isolation/forge.ts'
import { FORGE } from '../conversation-id.ts'
import { failureOf, graphqlErrorOf } from '../failure.ts'
import { type Repository, repositoryThere } from '../host.ts'
import { noRetries, type Octokits } from '../octokits.ts'

type Parts = { readonly octokits: () => Promise<Octokits>; readonly apiUrl: string | undefined; readonly clock: Clock }

const PER_REQUEST = 50

export const pullRequestStates = async (
  { octokits, apiUrl, clock }: Parts,
  codebase: Codebase,
  numbers: readonly number[],
  { signal }: { readonly signal?: AbortSignal | undefined } = {},
): Promise<PullRequestStates> => {
  const repository = repositoryThere(codebase, apiUrl)
  if (repository === undefined) return { found: [] }
  const found: PullRequestState[] = []
  for (let i = 0; i < numbers.length; i += PER_REQUEST) {
    try {
      found.push(...(await ask(await octokits(), repository, numbers.slice(i, i + PER_REQUEST), signal)))
    } catch (error) {
      if (signal?.aborted === true) throw error
      const message = failureOf(error, clock).message.split('\n')[0]?.slice(0, 200) ?? ''
      return { found, problem: { forge: FORGE, message } }
    }
  }
  return { found }
}

const ask = async (
  octokits: Octokits,
  { owner, repo }: Repository,
  numbers: readonly number[],
  signal: AbortSignal | undefined,
): Promise<PullRequestState[]> => {
  const octokit = await octokits.of({ owner, repo })
  const request = { ...noRetries, ...(signal && { signal }) }
  const variables = Object.fromEntries(numbers.map((number, i) => [`v${i}`, number]))
  const data = await octokit
    .graphql(queryFor(numbers), { owner, repo, ...variables, request })
    // A number that isn't a pull request is an error, beside the answers for the others.
    .catch((error: unknown) => graphqlErrorOf(error)?.data ?? Promise.reject(error))
  const { repository } = schema.parse(data)
  if (repository?.nameWithOwner?.toLowerCase() !== `${owner}/${repo}`.toLowerCase()) return []
  return numbers.flatMap((_, i) => stateOf(pullRequest.nullish().parse(repository[`q${i}`])) ?? [])
}

const queryFor = (numbers: readonly number[]): string => `
query (${['$owner: String!', '$repo: String!', ...numbers.map((_, i) => `$v${i}: Int!`)].join(', ')}) {
  repository(owner: $owner, name: $repo) {
    nameWithOwner
    ${numbers.map((_, i) => `q${i}: pullRequest(number: $v${i}) { ...state }`).join('\n    ')}
  }
}
fragment state on PullRequest {
  number
  closed
  merged
  headRefOid
  headRefName
  baseRefName
  mergeCommit { oid }
}`

const stateOf = (found: z.infer<typeof pullRequest> | null | undefined): PullRequestState | undefined => {
  if (!found) return undefined
  const { number, merged, closed, headRefOid, headRefName, baseRefName, mergeCommit } = found
  if (!merged) return { number, state: closed ? 'closed' : 'open' }
  const commit = mergeCommit?.oid ?? ''
  if (!isSha(headRefOid) || !isSha(commit)) return undefined
  return {
    number,
    state: 'merged',
    headSha: toSha(headRefOid),
    headBranch: headRefName,
    mergeCommit: toSha(commit),
    baseBranch: baseRefName,
  }
}

const pullRequest = z.object({
  number: z.number(),
  closed: z.boolean(),
  merged: z.boolean(),
  headRefOid: z.string(),
  headRefName: z.string(),
  baseRefName: z.string(),
  mergeCommit: z.object({ oid: z.string() }).nullish(),
})

const schema = z.object({
  repository: z.looseObject({ nameWithOwner: z.string().optional() }).nullish(),
})

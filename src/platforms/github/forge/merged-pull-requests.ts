/*
 * Which pull requests GitHub merged. In: tips of branches. Out: the merged pull requests with one of them as head. Only
 * asks; a question without a clear answer has none.
 */
import { z } from 'zod'
import type { Clock } from '../../../domain/clock.ts'
import type { MergedPullRequest } from '../../../domain/merge-proof.ts'
import { isSha, type Sha, toSha } from '../../../domain/names.ts'
import type { Forge, ForgeQuestion } from '../../../isolation/forge.ts'
import { FORGE } from '../conversation-id.ts'
import { failureOf, graphqlErrorOf } from '../failure.ts'
import { type Repository, repositoryThere } from '../host.ts'
import { noRetries, type Octokits } from '../octokits.ts'
import type { GithubSettings } from '../settings.ts'

/** Looks for the merged pull requests of a repository. Remembers how long GitHub wants to be left alone. */
export const createMergedPullRequests = (
  octokits: () => Promise<Octokits>,
  { apiUrl }: Pick<GithubSettings, 'apiUrl'>,
  { clock }: { readonly clock: Clock },
): Forge['mergedPullRequests'] => {
  let notBefore = 0
  return async (codebase, questions, { signal } = {}) => {
    const repository = repositoryThere(codebase, apiUrl)
    if (repository === undefined || questions.length === 0) return { merged: [] }
    if (clock() < notBefore) return silent([], 'rate limit exceeded')
    const found: MergedPullRequest[] = []
    for (const batch of batchesOf(lookupsFor(questions))) {
      try {
        found.push(...(await ask(await octokits(), repository, batch, signal)))
      } catch (error) {
        if (signal?.aborted === true) throw error
        const { message, retryAfterMs } = failureOf(error, clock)
        // The remaining batches would fail too, or make the limit worse.
        if (retryAfterMs !== undefined) notBefore = clock() + retryAfterMs
        return silent(found, message)
      }
    }
    return { merged: found }
  }
}

const silent = (merged: readonly MergedPullRequest[], message: string) => ({
  merged,
  problem: { forge: FORGE, message: message.split('\n')[0]?.slice(0, 200) ?? '' },
})

type Lookup = { readonly tips: ReadonlySet<Sha> } & (
  | { readonly by: 'branch'; readonly branch: string }
  | { readonly by: 'number'; readonly number: number }
)

/** Two questions may share a pull request. */
const lookupsFor = (questions: readonly ForgeQuestion[]): Lookup[] => {
  const tipsFor = <K>(keysOf: (question: ForgeQuestion) => readonly K[]): Map<K, Set<Sha>> => {
    const tips = new Map<K, Set<Sha>>()
    for (const question of questions) {
      for (const key of keysOf(question)) tips.set(key, (tips.get(key) ?? new Set()).add(question.tip))
    }
    return tips
  }
  const branches = tipsFor(({ branches }) => branches)
  const numbers = tipsFor(({ numbers }) => numbers)
  return [
    ...[...branches].map(([branch, tips]): Lookup => ({ by: 'branch', branch, tips })),
    ...[...numbers].map(([number, tips]): Lookup => ({ by: 'number', number, tips })),
  ]
}

/** One request for as many; GitHub gives up on a query after ten seconds, and counts at most 500,000 nodes. */
const LOOKUPS_PER_REQUEST = 50
/** Merged pull requests per branch name, newest first. If there are more, an older one isn't found: not proven. */
const PER_BRANCH = 20

function* batchesOf(lookups: readonly Lookup[]): Generator<readonly Lookup[]> {
  for (let i = 0; i < lookups.length; i += LOOKUPS_PER_REQUEST) yield lookups.slice(i, i + LOOKUPS_PER_REQUEST)
}

const ask = async (
  octokits: Octokits,
  { owner, repo }: Repository,
  lookups: readonly Lookup[],
  signal: AbortSignal | undefined,
): Promise<MergedPullRequest[]> => {
  const octokit = await octokits.of({ owner, repo })
  const request = { ...noRetries, ...(signal && { signal }) }
  const variables = { owner, repo, ...variablesOf(lookups), request }
  const answer = await octokit.graphql(queryFor(lookups), variables).catch(withoutUnknownNumbers)
  const { repository } = schema.parse(answer)
  const own = `${owner}/${repo}`.toLowerCase()
  if (repository?.nameWithOwner?.toLowerCase() !== own) return []
  return lookups.flatMap((lookup, i) => {
    const found = repository[`q${i}`]
    const pulls = lookup.by === 'branch' ? pullRequests.parse(found).nodes : [pullRequest.nullish().parse(found)]
    return pulls.flatMap((pull) => {
      const merged = pull && toMerged(pull, own, `${owner}/${repo}`)
      // A fork's branch of the same name is other work.
      const isFrom = lookup.by === 'number' || pull?.headRepository?.nameWithOwner.toLowerCase() === own
      return merged && isFrom && lookup.tips.has(merged.headSha) ? [merged] : []
    })
  })
}

const variablesOf = (lookups: readonly Lookup[]): Record<string, string | number> =>
  Object.fromEntries(lookups.map((lookup, i) => [`v${i}`, lookup.by === 'branch' ? lookup.branch : lookup.number]))

const queryFor = (lookups: readonly Lookup[]): string => `
query (${['$owner: String!', '$repo: String!', ...lookups.map(({ by }, i) => `$v${i}: ${by === 'branch' ? 'String' : 'Int'}!`)].join(', ')}) {
  repository(owner: $owner, name: $repo) {
    nameWithOwner
    ${lookups.map(({ by }, i) => `q${i}: ${by === 'branch' ? ofBranch(i) : `pullRequest(number: $v${i}) { ...merge }`}`).join('\n    ')}
  }
}
fragment merge on PullRequest {
  number
  merged
  headRefOid
  headRepository { nameWithOwner }
  baseRefName
  baseRepository { nameWithOwner }
  mergeCommit { oid }
}`

const ofBranch = (i: number): string =>
  `pullRequests(headRefName: $v${i}, states: [MERGED], first: ${PER_BRANCH}, orderBy: { field: UPDATED_AT, direction: DESC }) { nodes { ...merge } }`

/**
 * A number that isn't a pull request (any more) is an error beside the other answers. A repository that isn't there, or
 * that the account can't see, is no answer at all.
 */
const withoutUnknownNumbers = (error: unknown): unknown => {
  const { data, errors = [] } = graphqlErrorOf(error) ?? {}
  const repository = schema.safeParse(data).data?.repository ?? undefined
  if (repository === undefined || errors.some(({ type }) => type !== 'NOT_FOUND')) throw error
  return data
}

const toMerged = (
  { merged, number, headRefOid, baseRefName, baseRepository, mergeCommit }: z.infer<typeof pullRequest>,
  own: string,
  repository: string,
): MergedPullRequest | undefined => {
  const commit = mergeCommit?.oid ?? ''
  if (!merged || baseRepository?.nameWithOwner.toLowerCase() !== own) return undefined
  if (!isSha(headRefOid) || !isSha(commit)) return undefined
  return {
    forge: FORGE,
    repository,
    number,
    headSha: toSha(headRefOid),
    mergeCommit: toSha(commit),
    baseBranch: baseRefName,
  }
}

const named = z.object({ nameWithOwner: z.string() }).nullish()

const pullRequest = z.object({
  number: z.number(),
  merged: z.boolean(),
  headRefOid: z.string(),
  headRepository: named,
  baseRefName: z.string(),
  baseRepository: named,
  mergeCommit: z.object({ oid: z.string() }).nullish(),
})

const pullRequests = z.object({ nodes: z.array(pullRequest.nullish()) })

const schema = z.object({
  repository: z.looseObject({ nameWithOwner: z.string().optional() }).nullish(),
})

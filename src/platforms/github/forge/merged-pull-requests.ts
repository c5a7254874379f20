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
    let problem: string | undefined
    for (const batch of batchesOf(lookupsFor(questions))) {
      try {
        const answer = await ask(await octokits(), repository, batch, signal)
        found.push(...answer.merged)
        problem ??= answer.problem
      } catch (error) {
        if (signal?.aborted === true) throw error
        const { message, retryAfterMs } = failureOf(error, clock)
        // The remaining batches would fail too, or make the limit worse.
        if (retryAfterMs !== undefined) notBefore = clock() + retryAfterMs
        return silent(found, message)
      }
    }
    return problem === undefined ? { merged: found } : silent(found, problem)
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

/** GraphQL's `Int` has 32 bits, and one number beyond it makes GitHub refuse the whole query. */
const GREATEST_NUMBER = 2 ** 31 - 1

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
  const numbers = tipsFor(({ numbers }) => numbers.filter((number) => number <= GREATEST_NUMBER))
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

/** `problem`: why some lookups have no answer. */
type Answer = { readonly merged: readonly MergedPullRequest[]; readonly problem?: string | undefined }

/** If lookups that went wrong left no answer at all, the others are asked again. */
const ask = async (
  octokits: Octokits,
  repository: Repository,
  lookups: readonly Lookup[],
  signal: AbortSignal | undefined,
): Promise<Answer> => {
  try {
    return await askOnce(octokits, repository, lookups, signal)
  } catch (error) {
    const { failed, problem } = problemsIn(error)
    const others = lookups.filter((_, i) => !failed.has(aliasOf(i)))
    if (others.length === 0 || others.length === lookups.length) throw error
    const answer = await askOnce(octokits, repository, others, signal)
    return { ...answer, problem: answer.problem ?? problem }
  }
}

const askOnce = async (
  octokits: Octokits,
  { owner, repo }: Repository,
  lookups: readonly Lookup[],
  signal: AbortSignal | undefined,
): Promise<Answer> => {
  const octokit = await octokits.of({ owner, repo })
  const request = { ...noRetries, ...(signal && { signal }) }
  const variables = { owner, repo, ...variablesOf(lookups), request }
  const { data, failed, problem } = await octokit
    .graphql(queryFor(lookups), variables)
    .then((answer) => ({ data: answer, ...noProblems }), partialAnswer)
  const { repository } = schema.parse(data)
  const own = `${owner}/${repo}`.toLowerCase()
  if (repository?.nameWithOwner?.toLowerCase() !== own) return { merged: [], problem }
  const merged = lookups.flatMap((lookup, i) => {
    const found = repository[aliasOf(i)]
    if (failed.has(aliasOf(i)) || (problem !== undefined && found === null)) return []
    const pulls = lookup.by === 'branch' ? pullRequests.parse(found).nodes : [pullRequest.nullish().parse(found)]
    return pulls.flatMap((pull) => {
      const one = pull && toMerged(pull, own, `${owner}/${repo}`)
      // A fork's branch of the same name is other work.
      const isFrom = lookup.by === 'number' || pull?.headRepository?.nameWithOwner.toLowerCase() === own
      return one && isFrom && lookup.tips.has(one.headSha) ? [one] : []
    })
  })
  return { merged, problem }
}

const aliasOf = (i: number): string => `q${i}`

const variablesOf = (lookups: readonly Lookup[]): Record<string, string | number> =>
  Object.fromEntries(lookups.map((lookup, i) => [`v${i}`, lookup.by === 'branch' ? lookup.branch : lookup.number]))

const queryFor = (lookups: readonly Lookup[]): string => `
query (${['$owner: String!', '$repo: String!', ...lookups.map(({ by }, i) => `$v${i}: ${by === 'branch' ? 'String' : 'Int'}!`)].join(', ')}) {
  repository(owner: $owner, name: $repo) {
    nameWithOwner
    ${lookups.map(({ by }, i) => `${aliasOf(i)}: ${by === 'branch' ? ofBranch(i) : `pullRequest(number: $v${i}) { ...merge }`}`).join('\n    ')}
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

/** Which lookups went wrong, by alias, and what GitHub said about the first. */
type Problems = { readonly failed: ReadonlySet<unknown>; readonly problem: string | undefined }

const noProblems: Problems = { failed: new Set(), problem: undefined }

/** A number that isn't a pull request (any more) is an error, too, but also an answer. */
const problemsIn = (error: unknown): Problems => {
  const errors = (graphqlErrorOf(error)?.errors ?? []).filter(({ type }) => type !== 'NOT_FOUND')
  // Whoever asks again makes the limit worse.
  if (errors.some(({ type }) => type === 'RATE_LIMITED')) return noProblems
  return { failed: new Set(errors.map(({ path }) => path?.[1])), problem: errors[0]?.message }
}

/** A repository that isn't there, or that the account can't see, is no answer at all. */
const partialAnswer = (error: unknown): Problems & { readonly data: unknown } => {
  const { data, errors = [] } = graphqlErrorOf(error) ?? {}
  const repository = schema.safeParse(data).data?.repository ?? undefined
  if (repository === undefined || errors.some(({ type }) => type === 'RATE_LIMITED')) throw error
  return { data, ...problemsIn(error) }
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

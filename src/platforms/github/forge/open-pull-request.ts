import { RequestError } from 'octokit'
import { z } from 'zod'
import type { Clock } from '../../../domain/clock.ts'
import type { Codebase } from '../../../domain/environment.ts'
import type { NewPullRequest, OpenedPullRequest, PullRequest } from '../../../domain/forge/publishing.ts'
import { FORGE } from '../conversation-id.ts'
import { failureOf } from '../failure.ts'
import { type Repository, repositoryAt, repositoryThere } from '../host.ts'
import { htmlAsText } from '../markdown/html-as-text.ts'
import { withoutMentions } from '../markdown/mentions.ts'
import { noRetries, type Octokits } from '../octokits.ts'

export type OpenParts = {
  readonly octokits: () => Promise<Octokits>
  readonly apiUrl: string | undefined
  readonly clock: Clock
}

/** Opens a pull request, or finds the open one from that branch. */
export const openPullRequest = async (
  { octokits, apiUrl, clock }: OpenParts,
  codebase: Codebase,
  wanted: NewPullRequest,
  { signal }: { readonly signal?: AbortSignal | undefined } = {},
): Promise<OpenedPullRequest> => {
  const repository = repositoryOf(codebase, apiUrl)
  if (repository === undefined) return { outcome: 'no-forge' }
  const request = { ...noRetries, ...(signal && { signal }) }
  try {
    const calls = callsTo(await octokits(), repository, request)
    return await openOrFind(calls, wanted)
  } catch (error) {
    if (signal?.aborted === true) throw error
    return refusalOf(error, clock)
  }
}

/** Where the branch was pushed: not the codebase's GitHub repository if its remote is a fork of that. */
const repositoryOf = (codebase: Codebase, apiUrl: string | undefined): Repository | undefined => {
  const named = repositoryThere(codebase, apiUrl)
  const pushedTo = repositoryAt(codebase.remoteUrl, apiUrl) ?? named
  const isSame = named !== undefined && pushedTo !== undefined && fullName(named) === fullName(pushedTo)
  return codebase.github === undefined ? pushedTo : isSame ? named : undefined
}

const fullName = ({ owner, repo }: Repository): string => `${owner}/${repo}`.toLowerCase()

type Calls = {
  readonly openFrom: (branch: string) => Promise<PullRequest | undefined>
  readonly create: (wanted: NewPullRequest) => Promise<PullRequest>
}

const callsTo = (octokits: Octokits, { owner, repo }: Repository, request: object): Calls => ({
  openFrom: async (branch) => {
    const octokit = await octokits.of({ owner, repo })
    const query = { owner, repo, head: `${owner}:${branch}`, state: 'open' as const, per_page: 1, request }
    const [found] = z.array(answered).parse((await octokit.rest.pulls.list(query)).data)
    return found && toPullRequest(found)
  },
  create: async ({ branch, base, title, body, draft }) => {
    const octokit = await octokits.of({ owner, repo })
    const fields = { title: withoutMentions(title), body: withoutMentions(htmlAsText(body)), draft }
    const { data } = await octokit.rest.pulls.create({ owner, repo, head: branch, base, ...fields, request })
    return toPullRequest(answered.parse(data))
  },
})

const openOrFind = async ({ openFrom, create }: Calls, wanted: NewPullRequest): Promise<OpenedPullRequest> => {
  const known = await openFrom(wanted.branch)
  if (known !== undefined) return { outcome: 'exists', pullRequest: known }
  try {
    return { outcome: 'opened', pullRequest: await create(wanted) }
  } catch (error) {
    // Some plans have no drafts in private repositories.
    if (wanted.draft && says(error, /draft pull requests are not supported/i)) {
      return openOrFind({ openFrom, create }, { ...wanted, draft: false })
    }
    // Somebody was faster, or our own request was done and its answer lost.
    const isLost = !(error instanceof RequestError) || error.status >= 500
    const made = isLost || says(error, /pull request already exists/i) ? await openFrom(wanted.branch) : undefined
    if (made === undefined) throw error
    return { outcome: isLost ? 'opened' : 'exists', pullRequest: made }
  }
}

const refusalOf = (error: unknown, clock: Clock): OpenedPullRequest => {
  const { kind, message } = failureOf(error, clock)
  const said = saidIn(error)[0] ?? message.split('\n')[0] ?? ''
  if (kind === 'limited' || kind === 'away') return { outcome: 'unreachable', forge: FORGE, said: said.slice(0, 200) }
  const lacks = kind === 'unauthorized' || kind === 'missing' || (error instanceof RequestError && error.status === 403)
  const why = lacks ? 'permission' : says(error, /no commits between/i) ? 'no-difference' : 'other'
  return { outcome: 'refused', forge: FORGE, why, said: said.slice(0, 200) }
}

const says = (error: unknown, words: RegExp): boolean => saidIn(error).some((text) => words.test(text))

/** The reasons come before the general "Validation Failed". */
const saidIn = (error: unknown): readonly string[] => {
  if (!(error instanceof RequestError)) return []
  const { message, errors } = refusal.parse(error.response?.data)
  return [...errors.flatMap((one) => one.message ?? []), ...(message === undefined ? [] : [message])]
}

const refusal = z
  .object({
    message: z.string().optional(),
    errors: z.array(z.object({ message: z.string().optional() }).catch({})).catch([]),
  })
  .catch({ errors: [] })

const answered = z.object({ number: z.number(), html_url: z.string(), draft: z.boolean().optional() })

const toPullRequest = ({ number, html_url: url, draft = false }: z.infer<typeof answered>): PullRequest => ({
  forge: FORGE,
  number,
  url,
  draft,
})

import { z } from 'zod'
import { repositoryOf, type Thread } from './conversation-id.ts'
import { noRetries, type Identity, type Octokits } from './octokits.ts'
import { type PullRequest, pullRequestSchema } from './payloads.ts'

export type Comment = {
  readonly id: number
  readonly body: string
  readonly login: string
  readonly userId: number | undefined
  readonly appId: number | undefined
  readonly createdAt: string
}

export type LinkedToIssue = {
  /** Open pull requests that close it. */
  readonly pulls: readonly { readonly number: number; readonly branch: string }[]
  /** Branches created for it (*Development* on the issue's page). */
  readonly branches: readonly string[]
}

/** Calls to GitHub. Throws the SDK's errors; `failureOf` interprets them. */
export type GithubClient = {
  readonly identity: () => Promise<Identity>
  /** The user's roles in the repository, and the ID that the name belongs to today. */
  readonly permission: (
    repository: Pick<Thread, 'owner' | 'repo'>,
    login: string,
  ) => Promise<{ readonly userId: number | undefined; readonly roles: readonly string[] }>
  readonly pullRequest: (thread: Thread) => Promise<PullRequest>
  /** The issues in the same repository that GitHub says this pull request closes. */
  readonly closingIssues: (thread: Thread) => Promise<number[]>
  /** What GitHub links to this issue, in the same repository; forks are left out. */
  readonly linkedToIssue: (thread: Thread) => Promise<LinkedToIssue>
  /** The newest hundred or more, oldest first. */
  readonly newestComments: (thread: Thread, request?: { readonly retries: number }) => Promise<Comment[]>
  readonly createComment: (thread: Thread, body: string) => Promise<number>
  readonly updateComment: (thread: Thread, id: number, body: string) => Promise<void>
}

export type ClientParts = {
  readonly octokits: Octokits
  /** For GraphQL queries: the SDK takes each for a write, and lets only one pass per second. */
  readonly unpaced: Octokits
}

export const createClient = ({ octokits, unpaced }: ClientParts): GithubClient => ({
  identity: () => octokits.identity(),
  permission: async ({ owner, repo }, username) => {
    const octokit = await octokits.of({ owner, repo })
    const { data } = await octokit.rest.repos.getCollaboratorPermissionLevel({
      owner,
      repo,
      username,
      request: noRetries,
    })
    return { userId: data.user?.id, roles: [data.permission, data.role_name] }
  },
  pullRequest: async ({ owner, repo, number }) => {
    const octokit = await octokits.of({ owner, repo })
    return pullRequestSchema.parse((await octokit.rest.pulls.get({ owner, repo, pull_number: number })).data)
  },
  closingIssues: async ({ owner, repo, number }) => {
    const octokit = await unpaced.of({ owner, repo })
    const answer = closing.parse(await octokit.graphql(CLOSING, { owner, repo, number, request: noRetries }))
    const own = repositoryOf({ owner, repo }).toLowerCase()
    return (answer.repository.pullRequest?.closingIssuesReferences?.nodes ?? [])
      .filter(({ repository }) => repository.nameWithOwner.toLowerCase() === own)
      .map((issue) => issue.number)
  },
  linkedToIssue: async ({ owner, repo, number }) => {
    const octokit = await unpaced.of({ owner, repo })
    const { repository } = linkedToIssue.parse(
      await octokit.graphql(LINKED_TO_ISSUE, { owner, repo, number, request: noRetries }),
    )
    const own = repositoryOf({ owner, repo }).toLowerCase()
    const isOwn = (place: { readonly nameWithOwner: string } | null | undefined): boolean =>
      place?.nameWithOwner.toLowerCase() === own
    const { closedByPullRequestsReferences: pulls, linkedBranches: branches } = repository.issue ?? {}
    return {
      // Without closed ones, GitHub still lists merged ones.
      pulls: (pulls?.nodes ?? [])
        .filter(({ state, repository: base, headRepository: head }) => state === 'OPEN' && isOwn(base) && isOwn(head))
        .map((pull) => ({ number: pull.number, branch: pull.headRefName })),
      branches: (branches?.nodes ?? []).flatMap(({ ref }) => (ref && isOwn(ref.repository) ? [ref.name] : [])),
    }
  },
  newestComments: async ({ owner, repo, number }, request) => {
    const octokit = await octokits.of({ owner, repo })
    const page = async (n: number) => {
      const query = { owner, repo, issue_number: number, per_page: PAGE, page: n, ...(request && { request }) }
      const { data, headers } = await octokit.rest.issues.listComments(query)
      return { comments: comments.parse(data).map(toComment), last: lastPage(headers.link) }
    }
    const first = await page(1)
    if (first.last === undefined || first.last <= 1) return first.comments
    // The API sorts only oldest first: the newest are on the last page, which may have a single comment.
    const before = first.last === 2 ? first : await page(first.last - 1)
    return [...before.comments, ...(await page(first.last)).comments]
  },
  createComment: async ({ owner, repo, number }, body) => {
    const octokit = await octokits.of({ owner, repo })
    // No retries: after a 500 the comment may exist, and a blind retry would duplicate it.
    const where = { owner, repo, issue_number: number }
    return (await octokit.rest.issues.createComment({ ...where, body, request: noRetries })).data.id
  },
  updateComment: async ({ owner, repo }, id, body) => {
    const octokit = await octokits.of({ owner, repo })
    await octokit.rest.issues.updateComment({ owner, repo, comment_id: id, body, request: noRetries })
  },
})

const PAGE = 100

const lastPage = (link: string | undefined): number | undefined => {
  const last = link?.split(',').find((part) => part.includes('rel="last"'))
  const [, page] = /[?&]page=(\d+)/.exec(last ?? '') ?? []
  return page === undefined ? undefined : Number(page)
}

export const commentSchema = z.object({
  id: z.number(),
  body: z.string().nullish(),
  user: z.object({ id: z.number(), login: z.string() }).nullish(),
  performed_via_github_app: z.object({ id: z.number() }).nullish(),
  created_at: z.string(),
})

const comments = z.array(commentSchema)

export const toComment = (comment: z.infer<typeof commentSchema>): Comment => ({
  id: comment.id,
  body: comment.body ?? '',
  login: comment.user?.login ?? 'ghost',
  userId: comment.user?.id,
  appId: comment.performed_via_github_app?.id,
  createdAt: comment.created_at,
})

const CLOSING = `query ($owner: String!, $repo: String!, $number: Int!) {
  repository(owner: $owner, name: $repo) {
    pullRequest(number: $number) {
      closingIssuesReferences(first: 20) { nodes { number repository { nameWithOwner } } }
    }
  }
}`

const closing = z.object({
  repository: z.object({
    pullRequest: z
      .object({
        closingIssuesReferences: z
          .object({
            nodes: z.array(z.object({ number: z.number(), repository: z.object({ nameWithOwner: z.string() }) })),
          })
          .nullish(),
      })
      .nullish(),
  }),
})

const LINKED_TO_ISSUE = `query ($owner: String!, $repo: String!, $number: Int!) {
  repository(owner: $owner, name: $repo) {
    issue(number: $number) {
      closedByPullRequestsReferences(first: 20, includeClosedPrs: false) {
        nodes { number state headRefName repository { nameWithOwner } headRepository { nameWithOwner } }
      }
      linkedBranches(first: 20) { nodes { ref { name repository { nameWithOwner } } } }
    }
  }
}`

const place = z.object({ nameWithOwner: z.string() })

const linkedToIssue = z.object({
  repository: z.object({
    issue: z
      .object({
        closedByPullRequestsReferences: z
          .object({
            nodes: z.array(
              z.object({
                number: z.number(),
                state: z.string(),
                headRefName: z.string(),
                repository: place,
                // Null for a deleted fork.
                headRepository: place.nullish(),
              }),
            ),
          })
          .nullish(),
        linkedBranches: z
          .object({ nodes: z.array(z.object({ ref: z.object({ name: z.string(), repository: place }).nullish() })) })
          .nullish(),
      })
      .nullish(),
  }),
})

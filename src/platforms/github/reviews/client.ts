import { z } from 'zod'
import { type ClientParts, type Comment, commentSchema, toComment } from '../client.ts'
import type { Thread } from '../conversation-id.ts'
import { noRetries } from '../octokits.ts'
import { codeLocationFields, type CodeLocation, locationOf } from './code-location.ts'

/** A comment on a line of code. */
export type ReviewComment = Comment & {
  /** The first comment of its thread. */
  readonly thread: number
  readonly reviewId: number | undefined
  readonly location: CodeLocation
}

/** Calls about reviews. Throws the SDK's errors; `failureOf` interprets them. */
export type ReviewClient = {
  /** The pull request's newest two hundred or fewer, oldest first. */
  readonly reviewComments: (pull: Thread, request?: { readonly retries: number }) => Promise<ReviewComment[]>
  /** The first comments of resolved threads, among the newest hundred threads. */
  readonly resolvedThreads: (pull: Thread) => Promise<ReadonlySet<number>>
  readonly replyInThread: (pull: Thread, firstComment: number, body: string) => Promise<number>
  readonly updateReviewComment: (pull: Thread, id: number, body: string) => Promise<void>
}

export const createReviewClient = ({ octokits, unpaced }: ClientParts): ReviewClient => ({
  reviewComments: async ({ owner, repo, number }, request) => {
    const octokit = await octokits.of({ owner, repo })
    const found: ReviewComment[] = []
    for (let page = 1; page <= MAX_PAGES; page += 1) {
      const query = { owner, repo, pull_number: number, sort: 'created', direction: 'desc', per_page: PAGE } as const
      const { data } = await octokit.rest.pulls.listReviewComments({ ...query, page, ...(request && { request }) })
      found.push(...reviewComments.parse(data).map(toReviewComment))
      if (data.length < PAGE) break
    }
    return found.toReversed()
  },
  resolvedThreads: async ({ owner, repo, number }) => {
    const octokit = await unpaced.of({ owner, repo })
    const { repository } = threads.parse(await octokit.graphql(THREADS, { owner, repo, number, request: noRetries }))
    const nodes = repository.pullRequest?.reviewThreads.nodes ?? []
    return new Set(
      nodes
        .filter(({ isResolved }) => isResolved)
        .flatMap(({ comments }) => comments.nodes.map(({ fullDatabaseId }) => Number(fullDatabaseId))),
    )
  },
  replyInThread: async ({ owner, repo, number }, firstComment, body) => {
    const octokit = await octokits.of({ owner, repo })
    const where = { owner, repo, pull_number: number, comment_id: firstComment }
    // No retries: after a 500 the comment may exist.
    return (await octokit.rest.pulls.createReplyForReviewComment({ ...where, body, request: noRetries })).data.id
  },
  updateReviewComment: async ({ owner, repo }, id, body) => {
    const octokit = await octokits.of({ owner, repo })
    await octokit.rest.pulls.updateReviewComment({ owner, repo, comment_id: id, body, request: noRetries })
  },
})

const PAGE = 100
const MAX_PAGES = 2

const reviewComments = z.array(
  commentSchema.extend({
    in_reply_to_id: z.number().nullish(),
    pull_request_review_id: z.number().nullish(),
    ...codeLocationFields,
  }),
)

const toReviewComment = (comment: z.infer<typeof reviewComments>[number]): ReviewComment => ({
  ...toComment(comment),
  thread: comment.in_reply_to_id ?? comment.id,
  reviewId: comment.pull_request_review_id ?? undefined,
  location: locationOf(comment),
})

/** Only GraphQL says what is resolved. `databaseId` is too small for today's IDs. */
const THREADS = `query ($owner: String!, $repo: String!, $number: Int!) {
  repository(owner: $owner, name: $repo) {
    pullRequest(number: $number) {
      reviewThreads(last: 100) { nodes { isResolved comments(first: 1) { nodes { fullDatabaseId } } } }
    }
  }
}`

const threads = z.object({
  repository: z.object({
    pullRequest: z
      .object({
        reviewThreads: z.object({
          nodes: z.array(
            z.object({
              isResolved: z.boolean(),
              comments: z.object({ nodes: z.array(z.object({ fullDatabaseId: z.union([z.string(), z.number()]) })) }),
            }),
          ),
        }),
      })
      .nullish(),
  }),
})

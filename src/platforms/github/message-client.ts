import { z } from 'zod'
import type { ClientParts } from './client.ts'
import type { Thread } from './conversation-id.ts'
import type { MessageRef } from './message-id.ts'
import { noRetries } from './octokits.ts'

/** Calls about one message. Throws the SDK's errors; `failureOf` interprets them. */
export type MessageClient = {
  /** Adds 👀. Doing it twice is harmless: GitHub keeps one per user. */
  readonly react: (thread: Thread, message: MessageRef) => Promise<void>
  /** The message as the page shows it. Its images have addresses that are signed for a few minutes. */
  readonly html: (thread: Thread, message: MessageRef) => Promise<string>
  /** The ID of a conversation's repository. */
  readonly repositoryId: (thread: Thread) => Promise<number>
}

export const createMessageClient = ({ octokits, unpaced }: ClientParts): MessageClient => ({
  react: async ({ owner, repo, number }, { kind, id }) => {
    const { rest, graphql } = await octokits.of({ owner, repo })
    const reaction = { owner, repo, content: 'eyes', request: noRetries } as const
    switch (kind) {
      case 'opened':
        await rest.reactions.createForIssue({ ...reaction, issue_number: number })
        return
      case 'comment':
        await rest.reactions.createForIssueComment({ ...reaction, comment_id: id })
        return
      case 'review-comment':
        await rest.reactions.createForPullRequestReviewComment({ ...reaction, comment_id: id })
        return
      case 'review': {
        // The REST API has no reactions to a review.
        const review = await rest.pulls.getReview({ owner, repo, pull_number: number, review_id: id })
        await graphql(REACT, { id: review.data.node_id, request: noRetries })
      }
    }
  },
  html: async ({ owner, repo, number }, { kind, id }) => {
    const { rest } = await unpaced.of({ owner, repo })
    const asked = { owner, repo, mediaType: { format: 'full+json' } } as const
    const { data } = await {
      opened: () => rest.issues.get({ ...asked, issue_number: number }),
      comment: () => rest.issues.getComment({ ...asked, comment_id: id }),
      review: () => rest.pulls.getReview({ ...asked, pull_number: number, review_id: id }),
      'review-comment': () => rest.pulls.getReviewComment({ ...asked, comment_id: id }),
    }[kind]()
    return rendered.parse(data).body_html ?? ''
  },
  repositoryId: async ({ owner, repo }) => {
    const { rest } = await unpaced.of({ owner, repo })
    return (await rest.repos.get({ owner, repo })).data.id
  },
})

const REACT = `mutation ($id: ID!) {
  addReaction(input: { subjectId: $id, content: EYES }) { reaction { content } }
}`

const rendered = z.object({ body_html: z.string().nullish() })

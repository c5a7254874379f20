import { repositoryOf } from '../conversation-id.ts'
import type { CatchUpClient, Repository, WrittenComment } from './client.ts'

export type MissedCommentsParts = {
  readonly client: Pick<CatchUpClient, 'commentsSince' | 'subject'>
  /** The name to mention. */
  readonly bot: string
  /** Like a delivery that was just verified. Throws if it wasn't stored. */
  readonly handle: (event: string, payload: object) => Promise<void>
}

/**
 * Where a token may not see the webhook's deliveries: reads the comments themselves. Each is handled as its delivery
 * would have been, under the same ID. A comment that was edited isn't taken: whose words it has is unknown.
 */
export const readMissedComments = async (
  { client, bot, handle }: MissedCommentsParts,
  repository: Repository,
  since: number,
): Promise<number> => {
  const both = await Promise.all(
    KINDS.map(async (kind) => withKind(kind, await client.commentsSince(repository, since, kind))),
  )
  const name = `@${bot.toLowerCase()}`
  const missed = both
    .flat()
    .filter(({ comment }) => comment.updated_at === comment.created_at)
    .filter(({ comment }) => comment.body?.toLowerCase().includes(name) === true)
    .toSorted((a, b) => a.comment.created_at.localeCompare(b.comment.created_at))
    .slice(0, MAX_COMMENTS)
  for (const { kind, comment } of missed) {
    const subject = await client.subject({ ...repository, number: comment.number }, kind)
    const common = { action: 'created', repository: { full_name: repositoryOf(repository) }, sender: comment.user }
    await (kind === 'comment'
      ? handle('issue_comment', { ...common, issue: subject, comment: comment.raw })
      : handle('pull_request_review_comment', { ...common, pull_request: subject, comment: comment.raw }))
  }
  return missed.length
}

const KINDS = ['comment', 'review-comment'] as const
const MAX_COMMENTS = 50

const withKind = <Kind>(kind: Kind, comments: readonly WrittenComment[]) =>
  comments.map((comment) => ({ kind, comment }))

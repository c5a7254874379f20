import type { Clock } from '../../../domain/clock.ts'
import type { Logger } from '../../../process/log.ts'
import { repositoryOf } from '../conversation-id.ts'
import { failureOf } from '../failure.ts'
import type { CatchUpClient, Repository, WrittenComment } from './client.ts'

export type MissedCommentsParts = {
  readonly client: Pick<CatchUpClient, 'commentsSince' | 'subject'>
  /** The name to mention. */
  readonly bot: string
  /** Like a delivery that was just verified. Throws if it wasn't stored. */
  readonly handle: (event: string, payload: object) => Promise<void>
  /** True if what failed may be tried again by the next look. */
  readonly mayRetry: (id: string) => Promise<boolean>
  readonly clock: Clock
  readonly log: Logger
}

export type MissedComments = {
  readonly handled: number
  /** Comments from this time on are left for the next look; undefined: none. */
  readonly upTo: number | undefined
  /** Why a comment couldn't be handled yet. */
  readonly problem?: unknown
}

/**
 * Where a token may not see the webhook's deliveries: reads the comments themselves. Each is handled as its delivery
 * would have been, under the same ID. A comment that was edited isn't taken: whose words it has is unknown. One that
 * can't be handled holds up no other.
 */
export const readMissedComments = async (
  parts: MissedCommentsParts,
  repository: Repository,
  since: number,
): Promise<MissedComments> => {
  const lists = await Promise.all(
    KINDS.map(async (kind) => ({ kind, ...(await parts.client.commentsSince(repository, since, kind)) })),
  )
  const name = `@${parts.bot.toLowerCase()}`
  const missed = lists
    .flatMap(({ kind, comments }) => comments.map((comment) => ({ kind, comment })))
    .filter(({ comment }) => comment.updated_at === comment.created_at)
    .filter(({ comment }) => comment.body?.toLowerCase().includes(name) === true)
    .toSorted((a, b) => a.comment.created_at.localeCompare(b.comment.created_at))
  const now = missed.slice(0, MAX_COMMENTS)
  let problem: unknown
  for (const one of now) {
    const failed = await handleOne(parts, repository, one)
    problem ??= failed
  }
  const left = missed[MAX_COMMENTS]?.comment.created_at
  const unread = lists.flatMap(({ complete, comments }) => (complete ? [] : [comments.at(-1)?.updated_at]))
  const upTo = [left, ...unread].filter((at) => at !== undefined).map((at) => Date.parse(at))
  return {
    handled: now.length,
    upTo: upTo.length === 0 ? undefined : Math.min(...upTo),
    ...(problem !== undefined && { problem }),
  }
}

type Missed = { readonly kind: (typeof KINDS)[number]; readonly comment: WrittenComment }

/** Returns why it has to be tried again. */
const handleOne = async (
  { client, handle, mayRetry, clock, log }: MissedCommentsParts,
  repository: Repository,
  { kind, comment }: Missed,
): Promise<unknown> => {
  try {
    const subject = await client.subject({ ...repository, number: comment.number }, kind)
    const common = { action: 'created', repository: { full_name: repositoryOf(repository) }, sender: comment.user }
    await (kind === 'comment'
      ? handle('issue_comment', { ...common, issue: subject, comment: comment.raw })
      : handle('pull_request_review_comment', { ...common, pull_request: subject, comment: comment.raw }))
    return undefined
  } catch (error) {
    const { kind: failure, message } = failureOf(error, clock)
    const isFinal = failure === 'missing' || failure === 'refused'
    if (!isFinal && (await mayRetry(`${kind} ${comment.id}`))) return error
    log.warn("couldn't handle a comment that was missed", {
      repository: repositoryOf(repository),
      id: comment.id,
      message,
    })
    return undefined
  }
}

const KINDS = ['comment', 'review-comment'] as const
const MAX_COMMENTS = 50

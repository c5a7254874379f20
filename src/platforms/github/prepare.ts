import type { Clock } from '../../domain/clock.ts'
import { AppError } from '../../domain/errors.ts'
import type { IsolationHints } from '../../domain/hints.ts'
import type { IncomingMessage, MessageDetails } from '../../domain/message.ts'
import type { Logger } from '../../process/log.ts'
import type { Comment, GithubClient } from './client.ts'
import { repositoryOf, type Thread, threadOf } from './conversation-id.ts'
import { failureOf } from './failure.ts'
import { closingIssuesIn } from './markdown/links.ts'
import { type MessageRef, messageRefOf } from './message-id.ts'
import { headHints } from './parse.ts'
import type { ReviewClient } from './reviews/client.ts'
import { type AboutMessage, describeReviews } from './reviews/context.ts'
import { MAX_COMMENTS, withComments } from './thread-context.ts'

export type PrepareParts = {
  readonly client: Pick<GithubClient, 'pullRequest' | 'closingIssues' | 'linkedToIssue' | 'newestComments'> &
    Pick<ReviewClient, 'reviewComments' | 'resolvedThreads'>
  readonly clock: Clock
  readonly log: Logger
}

/**
 * Adds what the delivery lacks: the pull request's current state and the issues it closes, or the issue's pull requests
 * and branch; the newest comments; and the review threads that matter.
 */
export const prepareMessage = async (
  parts: PrepareParts,
  { conversationId, text, details }: Pick<IncomingMessage, 'conversationId' | 'text' | 'details'>,
): Promise<MessageDetails> => {
  const thread = threadOf(conversationId)
  if (thread === undefined) return details
  const { hints, context } = details
  const message = messageRefOf(details.messageId)
  const about = { message, thread: messageRefOf(details.replyTo)?.id }
  // Nothing precedes the description.
  const hasEarlier = context !== undefined && message?.kind !== 'opened'
  const [now, remarks, reviews] = await Promise.all([
    currentHints(parts, thread, hints, text),
    hasEarlier ? earlierComments(parts, thread, message) : [],
    hasEarlier && hints?.workflowType === 'pr' ? reviewThreads(parts, thread, about) : '',
  ])
  return {
    ...details,
    ...(now !== undefined && { hints: now }),
    ...(context !== undefined && {
      context: withComments(
        [context, ...(reviews === '' ? [] : [reviews])].join('\n'),
        remarks.map(({ login, createdAt, body }) => ({ by: `@${login}`, at: createdAt, text: body })),
      ),
    }),
  }
}

const currentHints = async (
  parts: PrepareParts,
  thread: Thread,
  hints: IsolationHints | undefined,
  text: string,
): Promise<IsolationHints | undefined> => {
  switch (hints?.workflowType) {
    case 'pr':
      return withSaid(thread, await pullRequestHints(parts, thread, hints), text)
    case 'issue':
      return { ...hints, ...(await issueHints(parts, thread)) }
    default:
      return hints
  }
}

/** An allowed user's own words count like the description: `@coppice rebase this. Fixes #8`. */
const withSaid = (thread: Thread, hints: IsolationHints, text: string): IsolationHints => {
  const said = closingIssuesIn(text, repositoryOf(thread), 'stated').filter((number) => number !== thread.number)
  const linkedIssues = [...new Set([...(hints.linkedIssues ?? []), ...said])]
  return linkedIssues.length === 0 ? hints : { ...hints, linkedIssues }
}

/** Optional: an issue is worked on even if GitHub doesn't say what is linked to it. */
const issueHints = async (
  { client, clock, log }: PrepareParts,
  thread: Thread,
): Promise<Pick<IsolationHints, 'linkedPRs' | 'suggestedBranch'>> => {
  try {
    const { pulls, branches } = await client.linkedToIssue(thread)
    const heads = [...new Set(pulls.map(({ branch }) => branch))]
    const suggestedBranch = only(heads) ?? only(branches)
    return {
      ...(pulls.length > 0 && { linkedPRs: pulls.map(({ number }) => number) }),
      ...(suggestedBranch !== undefined && { suggestedBranch }),
    }
  } catch (error) {
    const { message } = failureOf(error, clock)
    log.warn('the pull requests that close an issue could not be read', { number: thread.number, message })
    return {}
  }
}

/** Two are no suggestion. */
const only = (names: readonly string[]): string | undefined => (names.length === 1 ? names[0] : undefined)

/**
 * A comment's delivery doesn't say where its pull request's head is, and without that the work would get another
 * branch, so the run fails. If the head is already known, an outage doesn't matter.
 */
const pullRequestHints = async (
  parts: PrepareParts,
  thread: Thread,
  hints: IsolationHints,
): Promise<IsolationHints> => {
  const { client, clock } = parts
  const [pull, closing] = await Promise.all([
    client.pullRequest(thread).catch((error: unknown) => {
      if (hints.prBranch !== undefined) return undefined
      throw new AppError('remote-unreachable', `couldn't get the head of pull request #${thread.number} from GitHub`, {
        cause: error,
        remedy: `try again in a minute (${failureOf(error, clock).message.slice(0, 200)})`,
      })
    }),
    closingIssues(parts, thread),
  ])
  const named = pull === undefined ? hints.linkedIssues : closingIssuesIn(pull.body ?? '', repositoryOf(thread))
  // GitHub parses a new description shortly after notifying us, so *none* may only mean *not yet*.
  const linkedIssues = (closing.length > 0 ? closing : (named ?? [])).filter((number) => number !== thread.number)
  const { linkedIssues: _before, ...rest } = hints
  return { ...rest, ...(pull !== undefined && headHints(pull)), ...(linkedIssues.length > 0 && { linkedIssues }) }
}

const closingIssues = async ({ client, clock, log }: PrepareParts, thread: Thread): Promise<readonly number[]> => {
  try {
    return await client.closingIssues(thread)
  } catch (error) {
    const { message } = failureOf(error, clock)
    log.warn('the issues that a pull request closes are taken from its text', { number: thread.number, message })
    return []
  }
}

const earlierComments = async (
  { client, clock, log }: PrepareParts,
  thread: Thread,
  message: MessageRef | undefined,
): Promise<readonly Comment[]> => {
  const own = message?.kind === 'comment' ? message.id : Infinity
  try {
    return (await client.newestComments(thread)).filter(({ id }) => id < own).slice(-MAX_COMMENTS)
  } catch (error) {
    const { message: reason } = failureOf(error, clock)
    log.warn('earlier comments could not be read', { number: thread.number, message: reason })
    return []
  }
}

/** Optional: without them the message is worked on with what it says itself. */
const reviewThreads = async (
  { client, clock, log }: PrepareParts,
  thread: Thread,
  about: AboutMessage,
): Promise<string> => {
  const failed = (error: unknown): undefined => {
    const { message } = failureOf(error, clock)
    log.warn('review threads could not be read', { number: thread.number, message })
  }
  const [comments, resolved] = await Promise.all([
    client.reviewComments(thread).catch(failed),
    client.resolvedThreads(thread).catch(failed),
  ])
  return comments === undefined ? '' : describeReviews({ comments, resolved }, about)
}

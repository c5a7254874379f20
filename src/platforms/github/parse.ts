import type { IsolationHints } from '../../domain/hints.ts'
import type { MergeEvent, MessageDetails } from '../../domain/message.ts'
import { isSha, toSha } from '../../domain/names.ts'
import { conversationIdOf, FORGE } from './conversation-id.ts'
import { type MessageKind, messageIdOf } from './message-id.ts'
import { attachmentsIn } from './attachments/uploads.ts'
import { closingIssuesIn } from './markdown/links.ts'
import { isOurs } from './marker.ts'
import { textForBot } from './markdown/mention.ts'
import * as read from './payloads.ts'
import { reviewThreadTarget } from './reply-place.ts'
import { locationOf } from './reviews/code-location.ts'
import { describeCodeLocation, describeThread } from './thread-context.ts'
import { visible } from './markdown/visible.ts'

/** A delivery's meaning. Whether its author is allowed is decided elsewhere. */
export type Parsed =
  | { readonly kind: 'ignored'; readonly reason: string }
  | {
      readonly kind: 'closed'
      readonly conversationId: string
      readonly details: MessageDetails
      readonly deliveryId: string
      readonly writtenAt: number
    }
  | {
      readonly kind: 'message'
      readonly conversationId: string
      readonly text: string
      readonly author: read.Writer
      readonly details: MessageDetails
      readonly deliveryId: string
      readonly writtenAt: number
    }

export type ParseSettings = {
  /** The name to mention, without @. */
  readonly bot: string
  /** Unregistered repositories may be cloned. */
  readonly cloneUnknown: boolean
  /** Where people see GitHub, and upload files: `https://github.com`. */
  readonly webUrl: string
}

/** Pure: depends only on the delivery. */
export const parseDelivery = (event: string, payload: unknown, settings: ParseSettings): Parsed => {
  const { data: { action = '' } = {} } = read.anyPayload.safeParse(payload)
  const reader = readers[`${event}.${action}`]
  if (reader === undefined) return ignored(`unsupported event ${event.slice(0, 60)} ${action.slice(0, 60)}`.trim())
  return reader(payload, settings)
}

/** Whether a delivery can mean anything to us. */
export const isRead = (event: string, action: string): boolean => Object.hasOwn(readers, `${event}.${action}`)

type Reader = (payload: unknown, settings: ParseSettings) => Parsed

/** Edits and deletions are ignored: an edited text isn't a new message. */
const readers: Readonly<Record<string, Reader>> = {
  'issues.opened': (payload, settings) => {
    const { data } = read.payloads.issues.safeParse(payload)
    return data === undefined ? unreadable : parseRemark(data, settings, issueThread(data.issue), openingOf(data.issue))
  },
  'issues.closed': (payload) => {
    const { data } = read.payloads.issues.safeParse(payload)
    return data === undefined ? unreadable : closed(data, data.issue)
  },
  'issue_comment.created': (payload, settings) => {
    const { data } = read.payloads.issue_comment.safeParse(payload)
    if (data === undefined) return unreadable
    const { issue, comment } = data
    const thread = isSet(issue.pull_request) ? pullRequestThread(issue, undefined) : issueThread(issue)
    return parseRemark(data, settings, thread, remarkOf('comment', comment))
  },
  'pull_request.opened': (payload, settings) => {
    const { data } = read.payloads.pull_request.safeParse(payload)
    if (data === undefined) return unreadable
    const { pull_request: pull } = data
    return parseRemark(data, settings, pullRequestThread(pull, pull), openingOf(pull))
  },
  'pull_request.closed': (payload) => {
    const { data } = read.payloads.pull_request.safeParse(payload)
    return data === undefined ? unreadable : closed(data, data.pull_request, mergeOf(data))
  },
  'pull_request_review.submitted': (payload, settings) => {
    const { data } = read.payloads.pull_request_review.safeParse(payload)
    if (data === undefined) return unreadable
    const { pull_request: pull, review } = data
    const remark = remarkOf('review', { ...review, created_at: review.submitted_at })
    return parseRemark(data, settings, pullRequestThread(pull, pull), remark)
  },
  'pull_request_review_comment.created': (payload, settings) => {
    const { data } = read.payloads.pull_request_review_comment.safeParse(payload)
    if (data === undefined) return unreadable
    const { pull_request: pull, comment } = data
    return parseRemark(data, settings, pullRequestThread(pull, pull), {
      ...remarkOf('review-comment', comment),
      place: describeCodeLocation(locationOf(comment)),
      replyTo: reviewThreadTarget(comment.in_reply_to_id ?? comment.id),
    })
  },
}

type Subject = {
  readonly id: number
  readonly number: number
  readonly title: string
  readonly body?: string | null | undefined
  readonly user?: read.Writer | null | undefined
}

type ThreadRead = Subject & { readonly pull: boolean; readonly head?: read.PullRequest | undefined }

type Remark = {
  readonly body: string
  readonly author: read.Writer | null | undefined
  readonly viaApp: unknown
  readonly messageId: string
  readonly at: string | null | undefined
  /** It's the issue's or pull request's own description. */
  readonly opening?: boolean
  readonly place?: string
  readonly replyTo?: string
}

const issueThread = (issue: Subject): ThreadRead => ({ ...issue, pull: false })
const pullRequestThread = (issue: Subject, head: read.PullRequest | undefined): ThreadRead => ({
  ...issue,
  pull: true,
  head,
})

const openingOf = (
  subject: Subject & {
    readonly created_at?: string | null | undefined
    readonly performed_via_github_app?: unknown
  },
): Remark => ({
  body: subject.body ?? '',
  author: subject.user,
  viaApp: subject.performed_via_github_app,
  at: subject.created_at,
  messageId: messageIdOf('opened', subject.id),
  opening: true,
})

const remarkOf = (
  kind: MessageKind,
  comment: {
    readonly id: number
    readonly body?: string | null | undefined
    readonly user?: read.Writer | null | undefined
    readonly created_at?: string | null | undefined
    readonly performed_via_github_app?: unknown
  },
): Remark => ({
  messageId: messageIdOf(kind, comment.id),
  body: comment.body ?? '',
  author: comment.user,
  viaApp: comment.performed_via_github_app,
  at: comment.created_at,
})

/** Accepts only a person's message to the bot, sent by its own author. */
const parseRemark = (
  { repository, sender }: Pick<read.IssuePayload, 'repository' | 'sender'>,
  { bot, cloneUnknown, webUrl }: ParseSettings,
  thread: ThreadRead,
  remark: Remark,
): Parsed => {
  const { author, body } = remark
  if (author === null || author === undefined) return ignored('its author no longer exists')
  if (isSet(remark.viaApp) || isBot(author)) return ignored('its author is a bot')
  if (isOurs(body)) return ignored('it is our own comment')
  // A transferred issue is reopened by whoever transfers it, with another author's text.
  if (sender.id !== author.id) return ignored('its author is not the sender')
  const request = textForBot(body, bot)
  if (request === undefined) return ignored('the bot is not mentioned')
  const conversationId = conversationIdOf(repository.full_name, thread.number)
  const description = {
    body: thread.body ?? '',
    messageId: messageIdOf('opened', thread.id),
    isOthers: thread.user?.id !== author.id,
  }
  const attachments = attachmentsIn(remark.opening === true ? [remark] : [remark, description], conversationId, webUrl)
  return {
    kind: 'message',
    conversationId,
    text: request === '' ? wholeThread(thread, author) : request,
    author,
    deliveryId: remark.messageId,
    writtenAt: Date.parse(remark.at ?? ''),
    details: {
      userId: String(author.id),
      messageId: remark.messageId,
      ...(remark.replyTo !== undefined && { replyTo: remark.replyTo }),
      ...(attachments.length > 0 && { attachments }),
      github: repository.full_name,
      ...(cloneUnknown && repository.clone_url !== undefined && { cloneUrl: repository.clone_url }),
      title: { text: visible(thread.title).slice(0, 300), own: thread.user?.id === author.id },
      hints: hintsOf(thread, repository.full_name),
      context: `${describeThread({
        kind: thread.pull ? 'pull request' : 'issue',
        conversationId,
        title: thread.title,
        author: thread.user,
        body: remark.opening === true ? undefined : (thread.body ?? ''),
        head: thread.head?.head,
      })}${remark.place ?? ''}`,
    },
  }
}

/**
 * If there is only the bot's name, the thread itself is the task. Its title is an instruction only from its author; for
 * anybody else it is only context.
 */
const wholeThread = ({ title, user, pull }: ThreadRead, author: read.Writer): string =>
  user?.id === author.id ? visible(title) : `Please work on this ${pull ? 'pull request' : 'issue'}.`

/**
 * Not by the bot's own name: with a person's token, the account that mentions it is also the one that replies. Our
 * replies have our marker, and mention nobody.
 */
const isBot = ({ login, type }: read.Writer): boolean => type === 'Bot' || /\[bot\]$/i.test(login)

const hintsOf = ({ pull, number, head, body }: ThreadRead, repository: string): IsolationHints => {
  if (!pull) return { workflowType: 'issue', workflowId: String(number) }
  const linkedIssues = closingIssuesIn(body ?? '', repository).filter((linked) => linked !== number)
  return {
    workflowType: 'pr',
    workflowId: String(number),
    ...(head !== undefined && headHints(head)),
    ...(linkedIssues.length > 0 && { linkedIssues }),
  }
}

/** A missing head repository means a deleted fork. */
export const headHints = ({
  head,
  base,
}: Pick<read.PullRequest, 'head' | 'base'>): Required<Pick<IsolationHints, 'prBranch' | 'prSha' | 'isForkPR'>> => ({
  prBranch: head.ref,
  prSha: head.sha,
  isForkPR: head.repo?.full_name.toLowerCase() !== base.repo.full_name.toLowerCase(),
})

/** Undefined if it was closed without a merge, or the delivery doesn't say which commits. */
const mergeOf = ({ repository, pull_request: pull }: read.PullRequestPayload): MergeEvent | undefined => {
  const { merged, merge_commit_sha: mergeCommit, head, base, number } = pull
  if (merged !== true || base.ref === undefined || !isSha(mergeCommit ?? '') || !isSha(head.sha)) return undefined
  if (base.repo.full_name.toLowerCase() !== repository.full_name.toLowerCase()) return undefined
  return {
    forge: FORGE,
    repository: repository.full_name,
    number,
    headSha: toSha(head.sha),
    mergeCommit: toSha(mergeCommit ?? ''),
    baseBranch: base.ref,
    ...(!headHints(pull).isForkPR && { headBranch: head.ref }),
  }
}

const closed = (
  { repository, sender }: Pick<read.IssuePayload, 'repository' | 'sender'>,
  { id, number, closed_at: at }: Pick<read.IssuePayload['issue'], 'id' | 'number' | 'closed_at'>,
  mergedPullRequest?: MergeEvent,
): Parsed => ({
  kind: 'closed',
  conversationId: conversationIdOf(repository.full_name, number),
  deliveryId: `closed:${id}:${at ?? ''}`,
  writtenAt: Date.parse(at ?? ''),
  details: {
    userId: String(sender.id),
    github: repository.full_name,
    ...(mergedPullRequest !== undefined && { mergedPullRequest }),
  },
})

const ignored = (reason: string): Parsed => ({ kind: 'ignored', reason })
const unreadable = ignored('the payload does not match the schema GitHub documents')
const isSet = (value: unknown): boolean => value !== undefined && value !== null

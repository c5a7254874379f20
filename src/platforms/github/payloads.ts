import { z } from 'zod'
import { codeLocationFields } from './reviews/code-location.ts'

/*
 * Only the fields that we read. All others, and those that a later version adds, are ignored.
 */

const user = z.object({ id: z.number(), login: z.string(), type: z.string().optional() })
const writer = user.nullish()
const body = z.string().nullish()
/** Always present, and signed. Without it the delivery is refused as too old. */
const time = z.string().nullish()
const viaApp = z.unknown().optional()

const repository = z.object({ full_name: z.string(), clone_url: z.string().optional() })

const issue = z.object({
  id: z.number(),
  number: z.number(),
  title: z.string(),
  body,
  user: writer,
  pull_request: z.unknown().optional(),
  created_at: time,
  closed_at: time,
  performed_via_github_app: viaApp,
})

const pullRequest = z.object({
  id: z.number(),
  number: z.number(),
  title: z.string(),
  body,
  user: writer,
  created_at: time,
  closed_at: time,
  head: z.object({ ref: z.string(), sha: z.string(), repo: z.object({ full_name: z.string() }).nullish() }),
  base: z.object({ ref: z.string().optional(), repo: z.object({ full_name: z.string() }) }),
  merged: z.boolean().nullish(),
  merge_commit_sha: z.string().nullish(),
})

const comment = z.object({ id: z.number(), body, user: writer, created_at: time, performed_via_github_app: viaApp })

const review = comment.omit({ created_at: true }).extend({ submitted_at: time })

const reviewComment = comment.extend({ in_reply_to_id: z.number().nullish(), ...codeLocationFields })

const common = { repository, sender: user }

export const payloads = {
  issues: z.object({ ...common, issue }),
  issue_comment: z.object({ ...common, issue, comment }),
  pull_request: z.object({ ...common, pull_request: pullRequest }),
  pull_request_review: z.object({ ...common, pull_request: pullRequest, review }),
  pull_request_review_comment: z.object({ ...common, pull_request: pullRequest, comment: reviewComment }),
}

/**
 * The payload's event, derived from its content. `X-GitHub-Event` isn't signed: a replayed delivery can claim any
 * event.
 */
export const eventOf = (payload: object): keyof typeof payloads | undefined => {
  const about = new Map<string, unknown>(Object.entries(payload))
  return EVENTS.get(SUBJECTS.filter((name) => (about.get(name) ?? undefined) !== undefined).join(' '))
}

const SUBJECTS = ['issue', 'pull_request', 'comment', 'review', 'thread', 'discussion']

const EVENTS: ReadonlyMap<string, keyof typeof payloads> = new Map([
  ['issue', 'issues'],
  ['issue comment', 'issue_comment'],
  ['pull_request', 'pull_request'],
  ['pull_request review', 'pull_request_review'],
  ['pull_request comment', 'pull_request_review_comment'],
])

export const anyPayload = z.object({ action: z.string().optional() })

export type Writer = z.infer<typeof user>
export type PullRequest = z.infer<typeof pullRequest>
export type PullRequestPayload = z.infer<typeof payloads.pull_request>
export type IssuePayload = z.infer<typeof payloads.issues>

export { pullRequest as pullRequestSchema }

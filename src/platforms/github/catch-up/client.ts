import type { Octokit } from 'octokit'
import { z } from 'zod'
import type { ClientParts } from '../client.ts'
import type { Thread } from '../conversation-id.ts'
import { noRetries } from '../octokits.ts'

export type Repository = Pick<Thread, 'owner' | 'repo'>

/** The app's webhook, or one of a repository. */
export type Hook = { readonly kind: 'app' } | (Repository & { readonly kind: 'repository'; readonly id: number })

/** An attempt to deliver an event to a webhook. Each attempt has its own ID; the event's `guid` stays. */
export type Attempt = {
  readonly id: string
  readonly guid: string
  readonly at: number
  readonly succeeded: boolean
  readonly event: string
  readonly action: string
}

/** What catching up asks GitHub. Throws the SDK's errors; `failureOf` interprets them. */
export type CatchUpClient = {
  /** A page of attempts, newest first. */
  readonly attempts: (
    hook: Hook,
    cursor: string | undefined,
  ) => Promise<{ readonly attempts: readonly Attempt[]; readonly next: string | undefined }>
  /** GitHub then posts the event to the webhook again. */
  readonly redeliver: (hook: Hook, attemptId: string) => Promise<void>
  /** The repository's active webhooks that post to a path like ours. */
  readonly hooks: (repository: Repository) => Promise<readonly Hook[]>
  /** Comments changed since this time, by their last change, oldest first. Not `complete`: there are more. */
  readonly commentsSince: (
    repository: Repository,
    since: number,
    kind: 'comment' | 'review-comment',
  ) => Promise<{ readonly comments: readonly WrittenComment[]; readonly complete: boolean }>
  /** As a delivery has it. */
  readonly subject: (thread: Thread, kind: 'comment' | 'review-comment') => Promise<object>
}

export type WrittenComment = z.infer<typeof written> & { readonly number: number; readonly raw: object }

export const createCatchUpClient = ({ octokits, unpaced }: ClientParts): CatchUpClient => {
  const octokitOf = async (hook: Hook): Promise<Octokit> => {
    if (hook.kind === 'repository') return octokits.of(hook)
    if (octokits.app === undefined) throw new TypeError('only an app has an app webhook')
    return octokits.app
  }
  return {
    attempts: async (hook, cursor) => {
      const page = { per_page: PAGE, ...(cursor !== undefined && { cursor }), request: noRetries }
      const { rest } = await octokitOf(hook)
      const { data, headers } =
        hook.kind === 'app'
          ? await rest.apps.listWebhookDeliveries(page)
          : await rest.repos.listWebhookDeliveries({ owner: hook.owner, repo: hook.repo, hook_id: hook.id, ...page })
      return { attempts: attempts.parse(data).map(toAttempt), next: nextCursor(headers.link) }
    },
    redeliver: async (hook, attemptId) => {
      const octokit = await octokitOf(hook)
      // IDs can be larger than a JavaScript number, so they go into the path as text.
      const place = hook.kind === 'app' ? '/app/hook' : `/repos/${hook.owner}/${hook.repo}/hooks/${hook.id}`
      await octokit.request(`POST ${place}/deliveries/${attemptId}/attempts`, { request: noRetries })
    },
    hooks: async ({ owner, repo }) => {
      const { rest } = await octokits.of({ owner, repo })
      const { data } = await rest.repos.listWebhooks({ owner, repo, per_page: PAGE, request: noRetries })
      return hooks
        .parse(data)
        .filter(({ active, config }) => active && URL.parse(config.url ?? '')?.pathname.endsWith(OUR_PATH) === true)
        .map(({ id }) => ({ kind: 'repository', owner, repo, id }))
    },
    commentsSince: async ({ owner, repo }, since, kind) => {
      const { rest } = await unpaced.of({ owner, repo })
      const asked = { owner, repo, sort: 'updated', direction: 'asc', per_page: PAGE } as const
      const found: WrittenComment[] = []
      for (let page = 1; page <= MAX_PAGES; page += 1) {
        const query = { ...asked, since: new Date(since).toISOString(), page }
        const { data } =
          kind === 'comment'
            ? await rest.issues.listCommentsForRepo(query)
            : await rest.pulls.listReviewCommentsForRepo(query)
        found.push(...data.flatMap(toWritten))
        if (data.length < PAGE) return { comments: found, complete: true }
      }
      return { comments: found, complete: false }
    },
    subject: async ({ owner, repo, number }, kind) => {
      const { rest } = await unpaced.of({ owner, repo })
      return kind === 'comment'
        ? (await rest.issues.get({ owner, repo, issue_number: number })).data
        : (await rest.pulls.get({ owner, repo, pull_number: number })).data
    },
  }
}

const PAGE = 100
const MAX_PAGES = 3
const OUR_PATH = '/webhooks/github'

const attempts = z.array(
  z.object({
    id: z.union([z.number(), z.bigint()]),
    guid: z.string(),
    delivered_at: z.string(),
    status_code: z.number(),
    event: z.string(),
    action: z.string().nullish(),
  }),
)

const toAttempt = (one: z.infer<typeof attempts>[number]): Attempt => ({
  id: String(one.id),
  guid: one.guid,
  at: Date.parse(one.delivered_at),
  succeeded: one.status_code >= 200 && one.status_code < 300,
  event: one.event,
  action: one.action ?? '',
})

const hooks = z.array(
  z.object({ id: z.number(), active: z.boolean(), config: z.object({ url: z.string().optional() }) }),
)

const written = z.object({
  id: z.number(),
  body: z.string().nullish(),
  created_at: z.string(),
  updated_at: z.string(),
  user: z.object({ id: z.number(), login: z.string() }).nullish(),
})

/** The number is the end of `issue_url` or `pull_request_url`. */
const toWritten = (raw: object): WrittenComment[] => {
  const { data } = written.safeParse(raw)
  const { issue_url: issue, pull_request_url: pull } = raw as Record<string, unknown>
  const [, number] = /\/(\d{1,10})$/.exec(String(issue ?? pull).slice(-500)) ?? []
  return data === undefined || number === undefined ? [] : [{ ...data, number: Number(number), raw }]
}

const nextCursor = (link: string | undefined): string | undefined => {
  const next = link?.split(',').find((part) => part.includes('rel="next"'))
  return /[?&]cursor=([\w.-]{1,200})/.exec(next ?? '')?.[1]
}

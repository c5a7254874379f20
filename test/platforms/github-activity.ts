/*
 * What GitHub's API has around the messages themselves: review threads, reactions, uploaded files, and a webhook's
 * deliveries. Each rule names the page of docs.github.com that has it.
 */
import type { Answer } from './github-double.ts'

type User = { id: number; login: string; type: string }

export type DoubleReviewComment = {
  id: number
  in_reply_to_id?: number
  pull_request_review_id: number
  path: string
  line: number
  side: string
  diff_hunk: string
  body: string
  user: User
  created_at: string
  updated_at: string
  pull_request_url: string
}

export type DoubleAttempt = {
  readonly id: number
  readonly guid: string
  readonly delivered_at: string
  readonly status_code: number
  readonly event: string
  readonly action: string | null
}

export type Activity = {
  readonly self: User
  /** By pull request. */
  readonly reviewComments: Map<string, DoubleReviewComment[]>
  readonly resolved: Set<number>
  /** `comment:7 eyes`. */
  readonly reactions: Set<string>
  /** By message: `comment:7`. */
  readonly html: Map<string, string>
  /** Uploaded files by path. */
  readonly files: Map<string, string>
  /** The uploaded files that aren't this repository's (1), or are public. */
  readonly filesOf: Map<string, number | 'public'>
  /** Of the app, or of the repository's webhook. */
  readonly attempts: DoubleAttempt[]
  readonly redelivered: string[]
  /** Undefined: the token may not see them. */
  hooks: readonly object[] | undefined
  reviewComment(pull: string, body: string, more?: Partial<DoubleReviewComment>): DoubleReviewComment
}

const REPOSITORY_ID = 1
const STORAGE = '/github-production-repository-file-5c1aeb'

export const createActivity = (self: User, nextId: () => number): Activity => {
  const activity: Activity = {
    self,
    reviewComments: new Map(),
    resolved: new Set(),
    reactions: new Set(),
    html: new Map(),
    files: new Map(),
    filesOf: new Map(),
    attempts: [],
    redelivered: [],
    hooks: undefined,
    reviewComment: (pull, body, more = {}) => {
      const id = nextId()
      const at = new Date(id * 1_000).toISOString()
      const comment = {
        id,
        // Each reply is a review of its own.
        pull_request_review_id: id + 10_000,
        path: 'src/login.ts',
        line: 12,
        side: 'RIGHT',
        diff_hunk: '@@ -10,2 +10,3 @@\n a\n+b',
        body,
        user: { id: 6, login: 'bob', type: 'User' },
        created_at: at,
        updated_at: at,
        pull_request_url: `https://api.github.com/repos/${pull.replace('#', '/pulls/')}`,
        ...more,
      }
      activity.reviewComments.set(pull, [...(activity.reviewComments.get(pull) ?? []), comment])
      return comment
    },
  }
  return activity
}

type Asked = {
  readonly url: URL
  readonly body: Readonly<Record<string, unknown>>
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}
type Route = readonly [RegExp, (state: Activity, found: readonly string[], asked: Asked) => Answer]

const missing: Answer = { status: 404, body: { message: 'Not Found' } }

const page = <T>(all: readonly T[], asked: URLSearchParams): T[] => {
  const size = Number(asked.get('per_page') ?? 30)
  const number = Number(asked.get('page') ?? 1)
  return all.slice((number - 1) * size, number * size)
}

/**
 * REST "List issue comments for a repository", "List review comments in a repository": sorted by creation or by the last
 * change, both ways; `since` goes by the last change.
 */
export const commentsSince = (
  all: readonly { readonly created_at: string; readonly updated_at: string }[],
  { searchParams }: URL,
): Answer => {
  const since = Date.parse(searchParams.get('since') ?? '1970-01-01')
  const by = searchParams.get('sort') === 'updated' ? 'updated_at' : 'created_at'
  const shown = all
    .filter(({ updated_at: at }) => Date.parse(at) >= since)
    .toSorted((a, b) => a[by].localeCompare(b[by]))
  return {
    status: 200,
    body: page(searchParams.get('direction') === 'desc' ? shown.toReversed() : shown, searchParams),
  }
}

const reaction =
  (kind: string) =>
  ({ reactions }: Activity, [id = '']: readonly string[], { body }: Asked): Answer => {
    // REST "Reactions": eight kinds; 200 if it was there already.
    if (body['content'] !== 'eyes') return { status: 422, body: { message: 'Validation Failed' } }
    const made = `${kind}:${id} eyes`
    const status = reactions.has(made) ? 200 : 201
    reactions.add(made)
    return { status, body: { content: 'eyes' } }
  }

/** REST "Getting started": `body_html` only for the media type `application/vnd.github.full+json`. */
const rendered =
  (kind: string) =>
  ({ html }: Activity, [id = '']: readonly string[], { headers }: Asked): Answer => {
    const isFull = /^application\/vnd\.github(?:\.v3)?\.full\+json$/.test(String(headers['accept']))
    const found = html.get(`${kind}:${id}`)
    if (found === undefined && kind !== 'review') return missing
    return { status: 200, body: { id, node_id: `PRR_${id}`, ...(isFull && { body_html: found }) } }
  }

/** REST "App webhooks", "Repository webhooks": newest first, in pages with a cursor. */
const attemptsOf = ({ attempts }: Activity, url: URL): Answer => {
  const size = Number(url.searchParams.get('per_page') ?? 30)
  const from = Number(url.searchParams.get('cursor') ?? 0)
  const newest = attempts.toSorted((a, b) => b.delivered_at.localeCompare(a.delivered_at))
  const link = `<${url.origin}${url.pathname}?per_page=${size}&cursor=${from + size}>; rel="next"`
  return {
    status: 200,
    body: newest.slice(from, from + size),
    ...(from + size < newest.length && { headers: { link } }),
  }
}

const redeliver = ({ redelivered }: Activity, id: string): Answer => {
  redelivered.push(id)
  return { status: 202, body: {} }
}

const bearer = ({ headers }: Asked): string => String(headers['authorization'] ?? '').replace(/^\w+ /, '')

export const activityRoutes: readonly Route[] = [
  [
    /^GET \/repos\/([^/]+\/[^/]+)\/pulls\/(\d+)\/comments$/,
    ({ reviewComments }, [repository = '', number = ''], { url }) =>
      commentsSince(reviewComments.get(`${repository}#${number}`) ?? [], url),
  ],
  [
    /^GET \/repos\/([^/]+\/[^/]+)\/pulls\/comments$/,
    ({ reviewComments }, [repository = ''], { url }) =>
      commentsSince(
        [...reviewComments].flatMap(([pull, all]) => (pull.startsWith(`${repository}#`) ? all : [])),
        url,
      ),
  ],
  [
    // REST "Create a reply for a review comment": the ID of a top-level comment; "replies to replies are not supported".
    /^POST \/repos\/([^/]+\/[^/]+)\/pulls\/(\d+)\/comments\/(\d+)\/replies$/,
    (state, [repository = '', number = '', first = ''], { body }) => {
      const pull = `${repository}#${number}`
      const comment = state.reviewComments.get(pull)?.find(({ id }) => id === Number(first))
      if (comment === undefined) return missing
      if (comment.in_reply_to_id !== undefined) return { status: 422, body: { message: 'not a top-level comment' } }
      const more = { in_reply_to_id: comment.id, user: state.self }
      return { status: 201, body: state.reviewComment(pull, String(body['body']), more) }
    },
  ],
  [
    /^PATCH \/repos\/[^/]+\/[^/]+\/pulls\/comments\/(\d+)$/,
    ({ reviewComments }, [id], { body }) => {
      const comment = [...reviewComments.values()].flat().find((one) => one.id === Number(id))
      if (comment === undefined) return missing
      comment.body = String(body['body'])
      return { status: 200, body: comment }
    },
  ],
  [/^POST \/repos\/[^/]+\/[^/]+\/issues\/comments\/(\d+)\/reactions$/, reaction('comment')],
  [/^POST \/repos\/[^/]+\/[^/]+\/pulls\/comments\/(\d+)\/reactions$/, reaction('review-comment')],
  [/^POST \/repos\/[^/]+\/[^/]+\/issues\/(\d+)\/reactions$/, reaction('opened')],
  [/^GET \/repos\/[^/]+\/[^/]+\/issues\/comments\/(\d+)$/, rendered('comment')],
  [/^GET \/repos\/[^/]+\/[^/]+\/pulls\/\d+\/reviews\/(\d+)$/, rendered('review')],
  [
    // A signed address needs nothing else, and storage refuses a second kind of authentication.
    /^GET (\/private-user-images\/.*)$/,
    ({ files }, [path = ''], asked) => {
      const file = files.get(path)
      if (asked.url.searchParams.get('jwt') !== 'signed' || bearer(asked) !== '') return { status: 400 }
      return file === undefined ? missing : { status: 200, text: file }
    },
  ],
  [
    // Uploads of a private repository: a session or a classic token, no other (community discussions 162417). The
    // address of their storage has the repository's ID.
    /^GET (\/user-attachments\/.*|\/[^/]+\/[^/]+\/files\/.*)$/,
    ({ files, filesOf }, [path = ''], asked) => {
      const of = filesOf.get(path) ?? REPOSITORY_ID
      if (!files.has(path) || (of !== 'public' && !bearer(asked).startsWith('ghp_'))) return missing
      const id = of === 'public' ? 2 : of
      return { status: 302, headers: { location: `${STORAGE}/${id}/3?path=${encodeURIComponent(path)}` } }
    },
  ],
  [/^GET \/repos\/acme\/app$/, () => ({ status: 200, body: { id: REPOSITORY_ID } })],
  [
    /^GET \/github-production-repository-file-5c1aeb\/\d+\/3$/,
    ({ files }, _found, asked) => {
      const file = files.get(asked.url.searchParams.get('path') ?? '')
      return file === undefined ? missing : { status: 200, text: file }
    },
  ],
  [
    // Only with the app's own JSON Web Token.
    /^GET \/app\/hook\/deliveries$/,
    (state, _found, asked) => (bearer(asked).startsWith('eyJ') ? attemptsOf(state, asked.url) : { status: 401 }),
  ],
  [
    /^POST \/app\/hook\/deliveries\/(\d+)\/attempts$/,
    (state, [id = ''], asked) => (bearer(asked).startsWith('eyJ') ? redeliver(state, id) : { status: 401 }),
  ],
  [
    // 404 for a token without the permission Webhooks, as for a repository that isn't there.
    /^GET \/repos\/[^/]+\/[^/]+\/hooks$/,
    ({ hooks }) => (hooks === undefined ? missing : { status: 200, body: hooks }),
  ],
  [/^GET \/repos\/[^/]+\/[^/]+\/hooks\/\d+\/deliveries$/, (state, _found, { url }) => attemptsOf(state, url)],
  [/^POST \/repos\/[^/]+\/[^/]+\/hooks\/\d+\/deliveries\/(\d+)\/attempts$/, (state, [id = '']) => redeliver(state, id)],
]

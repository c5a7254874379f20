import { memoryForTest } from '../helpers/platform-memory.ts'
import { createHmac, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage as Request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createLogger } from '../../src/process/log.ts'
import { createSecrets, type Secrets } from '../../src/process/redaction/redact.ts'
import type { Platform, WebhookAnswer } from '../../src/platforms/platform.ts'
import type { PlatformMemory } from '../../src/platforms/memory.ts'
import type { GithubSettings } from '../../src/platforms/github/settings.ts'
import { createGithubPlatform, type GithubOptions } from '../../src/platforms/github/platform.ts'
import { type Activity, activityRoutes, commentsSince, createActivity } from './github-activity.ts'
import { type AppState, appRoutes, newAppState } from './github-app-double.ts'
import { answerGraphql, connection, Failed, type Fields, NotFound } from './github-graphql.ts'

/*
 * As much of GitHub's API as the platform asks for, over real HTTP, with the failures that the public emulator has not:
 * limits (docs.github.com, "Rate limits for the REST API": 403 or 429, with `retry-after` or `x-ratelimit-reset`),
 * errors, answers that never come, and answers that are lost after the thing was done.
 */

export type Answer = {
  readonly status: number
  readonly body?: unknown
  /** Sent as it is, instead of JSON. */
  readonly text?: string
  readonly headers?: Record<string, string>
}

/**
 * `lost`: it does what it is asked, and the connection breaks. `held`: it does it and never says so. `silent`: it does
 * nothing and never answers.
 */
export type Trouble = Answer | 'lost' | 'held' | 'silent'

export type DoubleComment = {
  id: number
  body: string
  user: User
  created_at: string
  updated_at: string
  issue_url: string
  edits: number
}
/** In `head`: `acme/app:fix-login`; undefined if its fork was deleted. */
export type DoublePull = {
  readonly number: number
  readonly state?: string
  readonly head?: string
  readonly in?: string
}
type User = { id: number; login: string; type: string }

export type GithubDouble = Activity &
  AppState & {
    readonly url: string
    readonly requests: string[]
    /** The credentials that came with them. */
    readonly authorizations: Set<string>
    readonly comments: Map<string, DoubleComment[]>
    /** By login. */
    readonly permissions: Map<string, { readonly id: number; readonly permission: string; readonly role?: string }>
    readonly pulls: Map<string, object>
    readonly issues: Map<string, object>
    readonly closing: Map<number, readonly string[]>
    /** What an issue's page lists under *Development*. */
    readonly development: Map<number, { readonly pulls?: readonly DoublePull[]; readonly branches?: readonly string[] }>
    /** Numbers and branches of pull requests that the GraphQL API fails to look up. */
    readonly failing: Set<number | string>
    /** What was asked of the GraphQL API. */
    readonly queries: string[]
    /** What goes wrong, asked for each request. */
    trouble: ((request: string) => Trouble | undefined) | undefined
    say(thread: string, user: Partial<User>, body: string): DoubleComment
    /** An issue of `acme/app`, instead of the one that it has. */
    issue(number: number, change?: Partial<DoubleIssue> & { readonly label?: string }): void
    bodies(thread: string): string[]
    close(): Promise<void>
  }

export const startDouble = async (): Promise<GithubDouble> => {
  let nextId = 100
  const self = { id: 900, login: 'coppice-machine', type: 'User' }
  const double: State = {
    ...newAppState(),
    ...createActivity(self, () => (nextId += 1)),
    requests: [],
    authorizations: new Set(),
    comments: new Map(),
    permissions: new Map(),
    pulls: new Map(),
    issues: new Map(),
    closing: new Map(),
    development: new Map(),
    failing: new Set(),
    queries: [],
    trouble: undefined,
    say: (thread, user, body) => {
      nextId += 1
      const who = { id: 1, login: 'somebody', type: 'User', ...user }
      const created_at = new Date(nextId * 1_000).toISOString()
      const issue_url = `https://api.github.com/repos/${thread.replace('#', '/issues/')}`
      const comment = { id: nextId, body, user: who, created_at, updated_at: created_at, issue_url, edits: 0 }
      double.comments.set(thread, [...(double.comments.get(thread) ?? []), comment])
      return comment
    },
    issue: (number, { label, ...change } = {}) => {
      const labels = label === undefined ? [] : [{ name: label }]
      const issue: DoubleIssue = { number, title: `Issue ${number}`, body: '', state: 'open', labels, ...change }
      double.issues.set(`acme/app#${number}`, issue)
    },
    bodies: (thread) => (double.comments.get(thread) ?? []).map(({ body }) => body),
  }
  const server = createServer((request, response) => {
    void serve(double, request, response)
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return Object.assign(double, {
    url,
    close: () =>
      new Promise<void>((closed) => {
        server.close(() => closed())
        server.closeAllConnections()
      }),
  })
}

const serve = async (double: State, request: Request, response: ServerResponse): Promise<void> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const line = `${request.method ?? ''} ${request.url ?? ''}`
  double.requests.push(line)
  double.authorizations.add(request.headers.authorization ?? '')
  const trouble = double.trouble?.(line)
  if (trouble === 'silent') return
  const text = Buffer.concat(chunks).toString()
  const body = text === '' ? {} : (JSON.parse(text) as Record<string, unknown>)
  const url = new URL(request.url ?? '/', `http://${request.headers.host ?? 'localhost'}`)
  const answer = typeof trouble === 'object' ? trouble : answerTo(double, request, url, body)
  if (trouble === 'held') return
  if (trouble === 'lost') {
    response.destroy()
    return
  }
  response.writeHead(answer.status, { 'content-type': 'application/json; charset=utf-8', ...answer.headers })
  response.end(answer.text ?? JSON.stringify(answer.body ?? { message: 'none' }))
}

type State = Omit<GithubDouble, 'url' | 'close'>
type Handler = (
  state: State,
  found: readonly string[],
  url: URL,
  body: Record<string, unknown>,
  authorization: string,
) => Answer

const missing: Answer = { status: 404, body: { message: 'Not Found' } }

const routes: readonly (readonly [RegExp, Handler])[] = [
  ...appRoutes,
  [/^GET \/user$/, ({ self }) => ({ status: 200, body: self })],
  [
    /^GET \/repos\/([^/]+\/[^/]+)\/collaborators\/([^/]+)\/permission$/,
    ({ permissions }, [, login = '']) => {
      const known = permissions.get(login)
      if (known === undefined) return missing
      const { id, permission, role = permission } = known
      return { status: 200, body: { permission, role_name: role, user: { id, login } } }
    },
  ],
  [
    /^GET \/repos\/([^/]+\/[^/]+)\/pulls\/(\d+)$/,
    ({ pulls }, [repository = '', number = '']) => {
      const pull = pulls.get(`${repository}#${number}`)
      return pull === undefined ? missing : { status: 200, body: pull }
    },
  ],
  [
    /^GET \/repos\/([^/]+\/[^/]+)\/issues\/(\d+)\/comments$/,
    ({ comments }, [repository = '', number = ''], url) => {
      const all = comments.get(`${repository}#${number}`) ?? []
      const size = Number(url.searchParams.get('per_page') ?? 30)
      const page = Number(url.searchParams.get('page') ?? 1)
      const last = Math.max(1, Math.ceil(all.length / size))
      const link = `<${url.origin}${url.pathname}?per_page=${size}&page=${last}>; rel="last"`
      return {
        status: 200,
        body: all.slice((page - 1) * size, page * size),
        ...(page < last && { headers: { link } }),
      }
    },
  ],
  [
    /^POST \/repos\/([^/]+\/[^/]+)\/issues\/(\d+)\/comments$/,
    (state, [repository = '', number = ''], _url, { body }) => {
      if (typeof body !== 'string' || body.length > 65_536) return { status: 422, body: { message: 'too long' } }
      return { status: 201, body: state.say(`${repository}#${number}`, state.self, body) }
    },
  ],
  [
    /^PATCH \/repos\/[^/]+\/[^/]+\/issues\/comments\/(\d+)$/,
    ({ comments }, [id], _url, { body }) => {
      const comment = [...comments.values()].flat().find((one) => one.id === Number(id))
      if (comment === undefined) return missing
      comment.body = String(body)
      comment.edits += 1
      return { status: 200, body: comment }
    },
  ],
  [
    /^GET \/repos\/([^/]+\/[^/]+)\/issues\/comments$/,
    ({ comments }, [repository = ''], url) => {
      const all = [...comments].flatMap(([thread, said]) => (thread.startsWith(`${repository}#`) ? said : []))
      return commentsSince(all, url)
    },
  ],
  [
    // REST "List repository issues": pull requests are among them; an issue has all of the labels.
    /^GET \/repos\/([^/]+\/[^/]+)\/issues$/,
    ({ issues }, [repository = ''], url) => {
      const { state = 'open', labels = '', sort, direction, ...paging } = Object.fromEntries(url.searchParams)
      if (sort !== 'created' || direction !== 'asc') return { status: 422 }
      const wanted = labels.split(',').filter((label) => label !== '')
      const all = [...issues]
        .filter(([thread]) => thread.startsWith(`${repository}#`))
        .map(([, issue]) => issue as DoubleIssue)
        .filter((issue) => state === 'all' || issue.state === state)
        .filter((issue) => wanted.every((label) => labelsOf(issue).includes(label.toLowerCase())))
      if (all.length === 0 && ![...issues.keys()].some((thread) => thread.startsWith(`${repository}#`))) return missing
      const [size, page] = [Number(paging['per_page'] ?? 30), Number(paging['page'] ?? 1)]
      const next = `<${url.origin}${url.pathname}?page=${page + 1}>; rel="next"`
      return {
        status: 200,
        body: all.slice((page - 1) * size, page * size),
        ...(page * size < all.length && { headers: { link: next } }),
      }
    },
  ],
  [
    // REST "Update an issue".
    /^PATCH \/repos\/([^/]+\/[^/]+)\/issues\/(\d+)$/,
    ({ issues }, [repository = '', number = ''], _url, body) => {
      const thread = `${repository}#${number}`
      const issue = issues.get(thread)
      if (issue === undefined) return missing
      issues.set(thread, { ...issue, ...body })
      return { status: 200, body: issues.get(thread) }
    },
  ],
  [
    /^GET \/repos\/([^/]+\/[^/]+)\/issues\/(\d+)$/,
    ({ html, issues }, [repository = '', number = '']) => {
      const issue = issues.get(`${repository}#${number}`)
      return issue === undefined
        ? missing
        : { status: 200, body: { ...issue, body_html: html.get(`opened:${number}`) } }
    },
  ],
  [
    /^POST \/graphql$/,
    (state, _found, _url, body) => {
      state.queries.push(String(body['query']))
      return { status: 200, body: answerGraphql(graphOf(state), body) }
    },
  ],
]

/** An issue as the REST API has it. */
export type DoubleIssue = {
  readonly number: number
  readonly title: string
  readonly body?: string | null
  readonly state: string
  readonly labels?: readonly { readonly name: string }[]
  readonly pull_request?: object
}

const labelsOf = ({ labels = [] }: DoubleIssue): readonly string[] => labels.map(({ name }) => name.toLowerCase())

/** What an issue's page lists under *Development*. */
const issueFields = (
  { pulls = [], branches = [] }: { readonly pulls?: readonly DoublePull[]; readonly branches?: readonly string[] } = {},
  own: string,
): Fields => ({
  closedByPullRequestsReferences: (args: { first?: number }) =>
    connection(
      pulls.map(({ number, state = 'OPEN', head, in: base = own }) => {
        const [repository = '', headRefName = 'gone'] = head?.split(':') ?? []
        const headRepository = head === undefined ? null : { nameWithOwner: repository }
        return { number, state, headRefName, repository: { nameWithOwner: base }, headRepository }
      }),
      args,
    ),
  linkedBranches: (args: { first?: number }) =>
    connection(
      branches.map((branch) => {
        const [nameWithOwner = '', name = ''] = branch.split(':')
        return { ref: name === '' ? null : { name, repository: { nameWithOwner } } }
      }),
      args,
    ),
})

/** A pull request as the REST API has it. */
type Pull = {
  readonly number: number
  readonly merged?: boolean
  readonly state?: string
  readonly merge_commit_sha?: string
  readonly head: { readonly ref: string; readonly sha: string; readonly repo: { readonly full_name: string } | null }
  readonly base: { readonly ref?: string; readonly repo: { readonly full_name: string } }
}

const graphOf = (state: State): Fields => ({
  // GraphQL "addReaction": a review can be reacted to only here.
  addReaction: ({ input }: { input: { subjectId: string; content: string } }) => {
    state.reactions.add(`${input.subjectId.replace('PRR_', 'review:')} ${input.content.toLowerCase()}`)
    return { reaction: { content: input.content } }
  },
  ...repositoryFields(state),
})

const repositoryFields = ({ pulls, closing, development, failing, reviewComments, resolved }: State): Fields => ({
  repository: ({ owner, name }: { owner: string; name: string }) => {
    const own = `${owner}/${name}`.toLowerCase()
    const all = [...pulls].filter(([thread]) => thread.toLowerCase().startsWith(`${own}#`))
    const spelled = all[0]?.[0].split('#')[0] ?? `${owner}/${name}`
    const inThere = all.map(([, pull]) => pull as Pull)
    return {
      nameWithOwner: spelled,
      issue: ({ number }: { number: number }) => issueFields(development.get(number), `${owner}/${name}`),
      pullRequest: ({ number }: { number: number }) => {
        if (failing.has(number)) throw new Failed('Something went wrong', false)
        const pull = inThere.find((one) => one.number === number)
        if (pull === undefined && !closing.has(number)) {
          throw new NotFound(`Could not resolve to a PullRequest with the number of ${number}.`)
        }
        return {
          ...pullFields(pull, closing.get(number) ?? []),
          reviewThreads: (args: { last?: number }) =>
            connection(
              (reviewComments.get(`${spelled}#${number}`) ?? [])
                .filter(({ in_reply_to_id: first }) => first === undefined)
                .map(({ id }) => ({
                  isResolved: resolved.has(id),
                  comments: (few: { first?: number }) => connection([{ fullDatabaseId: String(id) }], few),
                })),
              args,
            ),
        }
      },
      pullRequests: (args: { headRefName?: string; states?: string[]; first?: number }) => {
        // `PullRequestConnection!` in GitHub's public schema.
        if (failing.has(args.headRefName ?? '')) throw new Failed('Something went wrong', true)
        return connection(
          inThere
            .filter(({ head }) => args.headRefName === undefined || head.ref === args.headRefName)
            .filter(({ merged }) => args.states?.includes('MERGED') !== true || merged === true)
            .map((pull) => pullFields(pull, [])),
          args,
        )
      },
    }
  },
})

const pullFields = (pull: Pull | undefined, closes: readonly string[]): Fields => ({
  ...(pull && {
    number: pull.number,
    merged: pull.merged === true,
    closed: pull.merged === true || pull.state === 'closed',
    headRefOid: pull.head.sha,
    headRefName: pull.head.ref,
    headRepository: pull.head.repo && { nameWithOwner: pull.head.repo.full_name },
    baseRefName: pull.base.ref,
    baseRepository: { nameWithOwner: pull.base.repo.full_name },
    mergeCommit: pull.merge_commit_sha === undefined ? null : { oid: pull.merge_commit_sha },
  }),
  closingIssuesReferences: (args: { first?: number }) =>
    connection(
      closes.map((issue) => {
        const [nameWithOwner, linked] = issue.split('#')
        return { number: Number(linked), repository: { nameWithOwner } }
      }),
      args,
    ),
})

const answerTo = (state: State, request: Request, url: URL, body: Record<string, unknown>): Answer => {
  const { method = 'GET', headers } = request
  const line = `${method} ${url.pathname}`
  for (const [pattern, handle] of routes) {
    const found = pattern.exec(line)
    if (found !== null) return handle(state, found.slice(1), url, body, headers.authorization ?? '')
  }
  for (const [pattern, handle] of activityRoutes) {
    const found = pattern.exec(line)
    if (found !== null) return handle(state, found.slice(1), { url, body, headers })
  }
  return missing
}

export const SECRET = 'a secret of the webhook'

export const signed = (body: string | Uint8Array, secret = SECRET): string =>
  `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`

export type Posted = {
  readonly event: string
  readonly payload: unknown
  readonly id?: string
  readonly signature?: string | undefined
}

export const headersFor = ({ event, id = randomUUID() }: Posted, body: string): Record<string, string> => ({
  'content-type': 'application/json',
  'x-github-event': event,
  'x-github-delivery': id,
  'x-hub-signature-256': signed(body),
})

/** As GitHub posts it, without a server between. */
export const post = async (platform: Platform, posted: Posted): Promise<WebhookAnswer> => {
  const body = JSON.stringify(posted.payload)
  if (platform.webhook === undefined) throw new Error('it takes no webhooks')
  return platform.webhook({ headers: headersFor(posted, body), body: Buffer.from(body) })
}

export type MadePlatform = { readonly platform: Platform; readonly logged: string[]; readonly secrets: Secrets }

export const makeGithub = async (
  settings: GithubSettings,
  options: GithubOptions = {},
  clock: () => number = Date.now,
  memory: PlatformMemory = memoryForTest([], clock),
): Promise<MadePlatform> => {
  const logged: string[] = []
  const secrets = createSecrets()
  const log = createLogger({ write: (line) => logged.push(line), level: 'debug', clock, redact: (text) => text })
  const platform = await createGithubPlatform(
    { webhookSecret: SECRET, ...settings },
    { log, clock, ids: randomUUID, secrets, memory },
    { paced: false, timeoutMs: 2_000, ...options },
  )
  return { platform, logged, secrets }
}

/** What GitHub says about when: opened, closed, written, submitted. */
export const dated = (at = new Date().toISOString()) => ({ created_at: at, closed_at: at, submitted_at: at })

export const alice = { id: 5, login: 'alice', type: 'User' }

/** What GitHub posts when somebody comments. */
export const commented = (
  body: string,
  more: {
    readonly number?: number
    readonly id?: number
    readonly user?: object
    readonly pull?: boolean
    readonly at?: string
  } = {},
): { event: string; payload: object } => {
  const { number = 42, id = 1_000, user = alice, pull = false, at = new Date().toISOString() } = more
  return {
    event: 'issue_comment',
    payload: {
      action: 'created',
      repository: { full_name: 'acme/app', clone_url: 'https://github.com/acme/app.git' },
      sender: user,
      issue: {
        id: number,
        number,
        title: 'Login is broken',
        body: pull ? 'Fixes #7' : 'It says 500',
        user: alice,
        created_at: at,
        closed_at: at,
        ...(pull && { pull_request: { url: 'x' } }),
      },
      comment: { id, body, user, created_at: at },
    },
  }
}

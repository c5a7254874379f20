import type { Answer } from './github-double.ts'

/*
 * GitHub Apps and new pull requests, as GitHub's REST reference describes them: "Get a repository installation for the
 * authenticated app", "Create an installation access token for an app" (one hour), "List pull requests" and "Create a
 * pull request". The words of a 422 are GitHub's own (SWE-agent #179, vsoch/pull-request-action #86).
 */

export type OpenPull = {
  readonly number: number
  readonly title: string
  readonly body: string
  readonly draft: boolean
  readonly state: 'open' | 'closed'
  readonly head: { readonly ref: string; readonly label: string }
  readonly base: { readonly ref: string }
  readonly html_url: string
}

export type AppState = {
  /** The installation on each repository. */
  readonly installations: Map<string, number>
  /** Every token that was given out, with the time at which it expires. */
  readonly tokens: Map<string, number>
  readonly opened: OpenPull[]
  /** The time that tokens expire by. */
  now: () => number
  /** The plan has no drafts in private repositories. */
  hasDrafts: boolean
  /** The app lacks "Pull requests: write". */
  mayOpen: boolean
  /** The branches that were pushed; undefined: any. */
  branches: (() => readonly string[]) | undefined
}

export const newAppState = (): AppState => ({
  installations: new Map(),
  tokens: new Map(),
  opened: [],
  now: Date.now,
  hasDrafts: true,
  mayOpen: true,
  branches: undefined,
})

const HOUR = 3_600_000

type Handler = (
  state: AppState,
  found: readonly string[],
  url: URL,
  body: Record<string, unknown>,
  authorization: string,
) => Answer

/** A JWT is only for the app itself. */
const isJwt = (authorization: string): boolean => /^bearer ey[\w-]+\.[\w-]+\.[\w-]+$/i.test(authorization)

const wantsJwt: Answer = { status: 401, body: { message: 'A JSON web token could not be decoded' } }

const invalid = (message: string): Answer => ({
  status: 422,
  body: { message: 'Validation Failed', errors: [{ resource: 'PullRequest', code: 'custom', message }] },
})

export const appRoutes: readonly (readonly [RegExp, Handler])[] = [
  [
    /^GET \/repos\/([^/]+\/[^/]+)\/installation$/,
    ({ installations }, [repository = ''], _url, _body, authorization) => {
      if (!isJwt(authorization)) return wantsJwt
      const id = installations.get(repository)
      return id === undefined ? { status: 404, body: { message: 'Not Found' } } : { status: 200, body: { id } }
    },
  ],
  [
    /^POST \/app\/installations\/(\d+)\/access_tokens$/,
    ({ tokens, now }, [id], _url, _body, authorization) => {
      if (!isJwt(authorization)) return wantsJwt
      const token = `ghs_${id}x${tokens.size + 1}${'0'.repeat(30)}`
      const expires = now() + HOUR
      tokens.set(token, expires)
      return { status: 201, body: { token, expires_at: new Date(expires).toISOString(), permissions: {} } }
    },
  ],
  [
    /^GET \/repos\/([^/]+\/[^/]+)\/pulls$/,
    ({ opened }, _found, url) => {
      const head = url.searchParams.get('head')
      const state = url.searchParams.get('state') ?? 'open'
      return { status: 200, body: opened.filter((pull) => pull.head.label === head && pull.state === state) }
    },
  ],
  [
    /^POST \/repos\/([^/]+)\/([^/]+)\/pulls$/,
    (state, [owner = '', repo = ''], _url, { head, base, title, body, draft = false }) => {
      if (!state.mayOpen) return { status: 403, body: { message: 'Resource not accessible by integration' } }
      if (draft === true && !state.hasDrafts) {
        return { status: 422, body: { message: 'Draft pull requests are not supported in this repository.' } }
      }
      const ref = String(head)
      const label = `${owner}:${ref}`
      if (state.branches?.().includes(ref) === false) {
        const errors = [{ resource: 'PullRequest', field: 'head', code: 'invalid' }]
        return { status: 422, body: { message: 'Validation Failed', errors } }
      }
      if (state.opened.some((pull) => pull.head.label === label && pull.state === 'open')) {
        return invalid(`A pull request already exists for ${label}.`)
      }
      const number = state.opened.length + 7
      const pull = {
        number,
        title: String(title),
        body: String(body),
        draft: draft === true,
        state: 'open' as const,
        head: { ref, label },
        base: { ref: String(base) },
        html_url: `https://github.test/${owner}/${repo}/pull/${number}`,
      }
      state.opened.push(pull)
      return { status: 201, body: pull }
    },
  ],
]

import { App, Octokit } from 'octokit'
import { BoundedMap } from '../../domain/bounded-map.ts'
import { AppError } from '../../domain/errors.ts'
import type { Logger } from '../../process/log.ts'
import type { PlatformParts } from '../descriptor.ts'
import { repositoryOf, type Thread } from './conversation-id.ts'
import type { GithubSettings } from './settings.ts'

export type Identity =
  | { readonly kind: 'user'; readonly id: number; readonly login: string }
  | { readonly kind: 'app'; readonly id: number; readonly login: string }

/** Who speaks to GitHub: one token for everything, or an app that is installed per repository. */
export type Octokits = {
  readonly of: (repository: Pick<Thread, 'owner' | 'repo'>) => Promise<Octokit>
  readonly identity: () => Promise<Identity>
}

export type OctokitOptions = Pick<PlatformParts, 'log' | 'clock' | 'secrets'> & {
  /** An answer that takes longer does not come. */
  readonly timeoutMs: number
  /** GitHub's own pace: a comment every three seconds, another write every second. */
  readonly paced: boolean
}

export const createOctokits = (settings: GithubSettings, options: OctokitOptions): Octokits => {
  const { token, appId, privateKey } = settings
  const send = withTimeout(options.timeoutMs)
  if (appId !== undefined && privateKey !== undefined) {
    const defaults = defaultsOf(settings.apiUrl, options, hidingTokens(send, options))
    return ofApp(defaults, appId, privateKey, options)
  }
  if (appId !== undefined || privateKey !== undefined) {
    throw new AppError('config-invalid', 'the GitHub App needs both its ID and its private key', {
      remedy: 'set both GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY, or use GITHUB_TOKEN',
    })
  }
  if (token === undefined) {
    throw new AppError('config-invalid', 'no GitHub credentials configured', {
      remedy: 'set GITHUB_TOKEN, or GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY',
    })
  }
  const Configured = Octokit.defaults(defaultsOf(settings.apiUrl, options, send))
  const octokit = new Configured({ auth: token })
  return {
    of: async () => octokit,
    identity: async () => {
      const { data } = await octokit.rest.users.getAuthenticated({ request: atOnce })
      return { kind: 'user', id: data.id, login: data.login }
    },
  }
}

/** Tried once: whoever asks has a way of its own to try again. */
export const atOnce = { retries: 0 } as const

/** An app can be taken off a repository and put on it again, as another installation. */
const INSTALLED_MS = 600_000
const MOST_INSTALLATIONS = 500

const ofApp = (
  defaults: ReturnType<typeof defaultsOf>,
  appId: string,
  privateKey: string,
  { log, clock }: Pick<OctokitOptions, 'log' | 'clock'>,
): Octokits => {
  const appWith = (throttle: object): App =>
    new App({ appId, privateKey, Octokit: Octokit.defaults({ ...defaults, throttle }), log: sdkLog(log) })
  const app = appWith(defaults.throttle)
  /** Each installation has limits of its own. Without an id the SDK would send the comments of all in one line. */
  const perInstallation = new BoundedMap<number, App>(MOST_INSTALLATIONS)
  const appOf = (id: number): App => {
    const made = perInstallation.get(id) ?? appWith({ ...defaults.throttle, id: `installation ${id}` })
    perInstallation.set(id, made)
    return made
  }
  const installed = new Map<string, { readonly until: number; readonly octokit: Promise<Octokit> }>()
  const find = async ({ owner, repo }: Pick<Thread, 'owner' | 'repo'>): Promise<Octokit> => {
    const { data } = await app.octokit.rest.apps.getRepoInstallation({ owner, repo, request: atOnce })
    return appOf(data.id).getInstallationOctokit(data.id)
  }
  return {
    of: (repository) => {
      const name = repositoryOf(repository)
      const known = installed.get(name)
      if (known !== undefined && known.until > clock()) return known.octokit
      const finding = find(repository)
      installed.set(name, { until: clock() + INSTALLED_MS, octokit: finding })
      // Not installed, or GitHub was away: asked again the next time.
      finding.catch(() => installed.delete(name))
      return finding
    },
    identity: async () => {
      const { data } = await app.octokit.rest.apps.getAuthenticated({ request: atOnce })
      if (data === null) throw new AppError('config-invalid', 'GitHub does not know this app')
      return { kind: 'app', id: data.id, login: data.slug ?? data.name }
    },
  }
}

const defaultsOf = (apiUrl: string | undefined, { log, paced }: OctokitOptions, send: typeof fetch) => {
  const forSdk = sdkLog(log)
  return {
    ...(apiUrl !== undefined && { baseUrl: apiUrl }),
    userAgent: 'coppice',
    log: forSdk,
    request: { log: forSdk, fetch: send },
    retry: { retries: 2 },
    throttle: {
      enabled: paced,
      onRateLimit: waitsOut,
      onSecondaryRateLimit: waitsOut,
    },
  }
}

/** Short waits of questions only. A reply that has to wait goes back to the outbox, which lets the others pass. */
const waitsOut = (retryAfter: number, { method }: { method: string }, _octokit: unknown, retryCount: number): boolean =>
  method === 'GET' && retryCount === 0 && retryAfter <= LONGEST_WAIT_S

const LONGEST_WAIT_S = 10

/** Counted from when it is really sent, not from when it is queued for its turn. */
const withTimeout =
  (timeoutMs: number): typeof fetch =>
  (url, init) => {
    const timeout = AbortSignal.timeout(timeoutMs)
    const given = init?.signal
    const signal = given === undefined || given === null ? timeout : AbortSignal.any([given, timeout])
    return fetch(url, { ...init, signal })
  }

/**
 * The app signs itself a token (a JWT) and gets one per installation for it. Both are hidden from the moment they exist:
 * the first before it is sent, the second before the SDK sees the answer. They last an hour at most.
 */
export const hidingTokens = (
  send: typeof fetch,
  { secrets, clock }: Pick<OctokitOptions, 'secrets' | 'clock'>,
): typeof fetch => {
  const hidden = new Map<string, number>()
  const hideForNow = (token: string): void => {
    for (const [old, until] of hidden) {
      if (until > clock()) continue
      hidden.delete(old)
      secrets.forget(old)
    }
    hidden.set(token, clock() + HIDDEN_MS)
    secrets.add(token)
  }
  return async (url, init) => {
    const sent = new Headers(init?.headers).get('authorization')?.split(' ').at(-1)
    if (sent !== undefined) hideForNow(sent)
    const answer = await send(url, init)
    const address = url instanceof Request ? url.url : String(url)
    if (!/\/access_tokens(?:\?|$)/.test(address)) return answer
    const [, token] = /"token"\s*:\s*"([^"\\]+)"/.exec(await answer.clone().text()) ?? []
    if (token !== undefined) hideForNow(token)
    return answer
  }
}

/** Longer than GitHub accepts a token: what an agent printed meanwhile may be on its way for a while. */
const HIDDEN_MS = 2 * 60 * 60_000

const sdkLog = (log: Logger) => ({
  debug: () => undefined,
  info: () => undefined,
  warn: (message: string) => log.warn('GitHub client', { detail: message }),
  error: (message: string) => log.warn('GitHub client', { detail: message }),
})

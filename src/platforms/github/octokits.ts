import { App, Octokit } from 'octokit'
import { z } from 'zod'
import { BoundedMap } from '../../domain/bounded-map.ts'
import { AppError } from '../../domain/errors.ts'
import type { Logger } from '../../process/log.ts'
import type { PlatformParts } from '../descriptor.ts'
import { repositoryOf, type Thread } from './conversation-id.ts'
import { credentialsOf, type GithubSettings } from './settings.ts'

export type Identity =
  | { readonly kind: 'user'; readonly id: number; readonly login: string }
  | { readonly kind: 'app'; readonly id: number; readonly login: string }

/** Authenticated clients: one token for everything, or an app installed per repository. */
export type Octokits = {
  readonly of: (repository: Pick<Thread, 'owner' | 'repo'>) => Promise<Octokit>
  /** What those clients log in with; valid for a while yet. */
  readonly token: (repository: Pick<Thread, 'owner' | 'repo'>) => Promise<string>
  readonly identity: () => Promise<Identity>
  /** As the app itself, for what concerns no installation; undefined with a token. */
  readonly app?: Octokit
}

export type OctokitOptions = Pick<PlatformParts, 'log' | 'clock' | 'secrets'> & {
  /** How long to wait for a response. */
  readonly timeoutMs: number
  /** GitHub's recommended pace: a comment every three seconds, another write every second. */
  readonly paced: boolean
}

export const createOctokits = (settings: GithubSettings, options: OctokitOptions): Octokits => {
  const credentials = credentialsOf(settings)
  const send = withTimeout(options.timeoutMs)
  if ('appId' in credentials) {
    const defaults = defaultsOf(settings.apiUrl, options, redactingTokens(send, options))
    return ofApp(defaults, credentials.appId, credentials.privateKey, options)
  }
  const { token } = credentials
  const Configured = Octokit.defaults(defaultsOf(settings.apiUrl, options, send))
  const octokit = new Configured({ auth: token })
  return {
    of: async () => octokit,
    token: async () => token,
    identity: async () => {
      const { data } = await octokit.rest.users.getAuthenticated({ request: noRetries })
      return { kind: 'user', id: data.id, login: data.login }
    },
  }
}

/** Without credentials: public repositories only, and 60 requests an hour for this machine's address. */
export const createAnonymousOctokits = (
  { apiUrl }: Pick<GithubSettings, 'apiUrl'>,
  options: OctokitOptions,
): Pick<Octokits, 'of'> => {
  const Configured = Octokit.defaults(defaultsOf(apiUrl, options, withTimeout(options.timeoutMs)))
  const octokit = new Configured()
  return { of: async () => octokit }
}

/** No retries: the caller has its own. */
export const noRetries = { retries: 0 } as const

/** An app can be removed from a repository and installed again, as another installation. */
const INSTALLED_MS = 600_000
const MAX_INSTALLATIONS = 500

const ofApp = (
  defaults: ReturnType<typeof defaultsOf>,
  appId: string,
  privateKey: string,
  { log, clock }: Pick<OctokitOptions, 'log' | 'clock'>,
): Octokits => {
  const appWith = (throttle: object): App =>
    new App({ appId, privateKey, Octokit: Octokit.defaults({ ...defaults, throttle }), log: sdkLog(log) })
  const app = appWith(defaults.throttle)
  /** Each installation has its own limits. Without an id the SDK would queue all comments together. */
  const perInstallation = new BoundedMap<number, App>(MAX_INSTALLATIONS)
  const appOf = (id: number): App => {
    const made = perInstallation.get(id) ?? appWith({ ...defaults.throttle, id: `installation ${id}` })
    perInstallation.set(id, made)
    return made
  }
  const installed = new Map<string, { readonly until: number; readonly installation: Promise<number> }>()
  const find = async ({ owner, repo }: Pick<Thread, 'owner' | 'repo'>): Promise<number> => {
    const { data } = await app.octokit.rest.apps.getRepoInstallation({ owner, repo, request: noRetries })
    return data.id
  }
  const installationOf = (repository: Pick<Thread, 'owner' | 'repo'>): Promise<number> => {
    const name = repositoryOf(repository)
    const known = installed.get(name)
    if (known !== undefined && known.until > clock()) return known.installation
    const finding = find(repository)
    installed.set(name, { until: clock() + INSTALLED_MS, installation: finding })
    // Not installed, or GitHub was unreachable: look again next time.
    finding.catch(() => installed.delete(name))
    return finding
  }
  return {
    app: app.octokit,
    of: async (repository) => {
      const id = await installationOf(repository)
      return appOf(id).getInstallationOctokit(id)
    },
    token: async (repository) => {
      const installationId = await installationOf(repository)
      const { octokit } = appOf(installationId)
      const ask = async (refresh: boolean) =>
        installationToken.parse(await octokit.auth({ type: 'installation', installationId, refresh }))
      const cached = await ask(false)
      if (Date.parse(cached.expiresAt) - clock() > LEAST_LIFE_MS) return cached.token
      return (await ask(true)).token
    },
    identity: async () => {
      const { data } = await app.octokit.rest.apps.getAuthenticated({ request: noRetries })
      if (data === null) throw new AppError('config-invalid', "GitHub doesn't recognise this app")
      return { kind: 'app', id: data.id, login: data.slug ?? data.name }
    },
  }
}

/** The SDK gives its token away until the last minute; a clone takes longer. */
const LEAST_LIFE_MS = 15 * 60_000

const installationToken = z.object({ token: z.string(), expiresAt: z.string() })

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
      onRateLimit: shouldWait,
      onSecondaryRateLimit: shouldWait,
    },
  }
}

/** Waits only briefly, and only for reads. A reply that must wait returns to the outbox, which lets others pass. */
const shouldWait = (
  retryAfter: number,
  { method }: { method: string },
  _octokit: unknown,
  retryCount: number,
): boolean => method === 'GET' && retryCount === 0 && retryAfter <= MAX_WAIT_S

const MAX_WAIT_S = 10

/** Counted from when the request is sent, not from when it is queued. */
const withTimeout =
  (timeoutMs: number): typeof fetch =>
  (url, init) => {
    const timeout = AbortSignal.timeout(timeoutMs)
    const given = init?.signal
    const signal = given === undefined || given === null ? timeout : AbortSignal.any([given, timeout])
    return fetch(url, { ...init, signal })
  }

/**
 * The app signs its own token (a JWT) and exchanges it for one per installation. Both are redacted from the moment they
 * exist: the first before it is sent, the second before the SDK sees the response. They last an hour at most.
 */
export const redactingTokens = (
  send: typeof fetch,
  { secrets, clock }: Pick<OctokitOptions, 'secrets' | 'clock'>,
): typeof fetch => {
  const hidden = new Map<string, number>()
  const redactForNow = (token: string): void => {
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
    if (sent !== undefined) redactForNow(sent)
    const answer = await send(url, init)
    const address = url instanceof Request ? url.url : String(url)
    if (!/\/access_tokens(?:\?|$)/.test(address)) return answer
    const [, token] = /"token"\s*:\s*"([^"\\]+)"/.exec(await answer.clone().text()) ?? []
    if (token !== undefined) redactForNow(token)
    return answer
  }
}

/** Longer than a token is valid: an agent's earlier output may still be on its way. */
const HIDDEN_MS = 2 * 60 * 60_000

const sdkLog = (log: Logger) => ({
  debug: () => undefined,
  info: () => undefined,
  warn: (message: string) => log.warn('GitHub client', { detail: message }),
  error: (message: string) => log.warn('GitHub client', { detail: message }),
})

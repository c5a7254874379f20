import { createSign } from 'node:crypto'
import type { Clock } from '../../domain/clock.ts'
import {
  type Ask,
  type Response,
  createRequester,
  type Check,
  checked,
  type CheckParts,
  missing,
  fail,
  passed,
  recordOf,
  type Request,
  textOf,
  type Verdict,
  pass,
} from '../checks.ts'
import { missingEvents, missingPermissions } from './access.ts'
import type { GithubSettings } from './settings.ts'

/** Checks that GitHub accepts the token or app, what was granted, and that a webhook secret and a name are set. */
export const checkGithub = async (given: GithubSettings, parts: CheckParts): Promise<readonly Check[]> => {
  const ask = createRequester(parts)
  const { token, appId, privateKey, webhookSecret, bot, apiUrl = 'https://api.github.com' } = given
  const get =
    (bearer: string): Get =>
    (path) => ({
      url: `${apiUrl}${path}`,
      headers: { authorization: `Bearer ${bearer}`, accept: 'application/vnd.github+json', 'user-agent': 'coppice' },
    })
  const app = appId !== undefined && privateKey !== undefined ? appToken(appId, privateKey, parts.clock) : undefined
  const ofApp =
    app === undefined ? none : app.ok ? await checkApp(ask, get(app.token)) : { ...none, checks: [app.check] }
  const ofToken = token === undefined ? none : await checkToken(ask, get(token))
  return [
    ...ofApp.checks,
    ...ofToken.checks,
    ...(token === undefined && app === undefined
      ? [missing('token', 'GITHUB_TOKEN, or GITHUB_APP_ID with GITHUB_APP_PRIVATE_KEY')]
      : []),
    webhookSecret === undefined
      ? missing('webhook secret', 'GITHUB_WEBHOOK_SECRET')
      : passed('webhook secret', 'set; the first delivery will verify it'),
    ...checkName(bot?.replace(/^@/, ''), ofApp.name, ofToken.name),
  ]
}

type Get = (path: string) => Request

/** `name`: what the account is called, if GitHub says so. */
type Account = { readonly checks: readonly Check[]; readonly name: string | undefined }

const none: Account = { checks: [], name: undefined }

/** A token may be a person's own, and then nobody would think of mentioning them to reach the bot. */
const checkName = (bot: string | undefined, app: string | undefined, user: string | undefined): Check[] => {
  if (bot !== undefined) return [passed('name', `responds to @${bot}`)]
  if (app !== undefined) return [passed('name', `responds to @${app}`)]
  if (user === undefined) return []
  const remedy = `set GITHUB_BOT to the name that people mention: ${user} if the account is the bot's own, else another`
  return [checked('name', fail(`not set; responds to @${user}, the owner of the token`, remedy))]
}

const checkApp = async (ask: Ask, get: Get): Promise<Account> => {
  let name: string | undefined
  const app = await ask('app', get('/app'), ({ status, body }) => {
    if (status !== 200) return fail(`answered ${status}`, 'check that the app ID and the private key belong together')
    name = textOf(body['slug'] ?? body['name'])
    return granted(`is ${textOf(body['name'])}`, body, 'add them under Permissions & events in the settings of the app')
  })
  const installations = await ask('installations', get('/app/installations?per_page=100'), appInstallations)
  return { checks: app.passed || name !== undefined ? [app, installations] : [app], name }
}

const granted = (who: string, body: Readonly<Record<string, unknown>>, remedy: string): Verdict => {
  const permissions = missingPermissions(recordOf(body['permissions']))
  const events = missingEvents(body['events'])
  const lacking = [
    ...(permissions.length === 0 ? [] : [`missing permissions: ${permissions.join(', ')}`]),
    ...(events.length === 0 ? [] : [`missing events: ${events.join(', ')}`]),
  ]
  return lacking.length === 0 ? pass(who) : fail(`${who}; ${lacking.join('; ')}`, remedy)
}

/** Each account accepts what an app asks for later separately. */
const appInstallations = ({ status, items }: Response): Verdict => {
  if (status !== 200) return fail(`answered ${status}`, 'try again later')
  if (items.length === 0) return fail('none', 'install the app on the account that owns the repositories')
  for (const item of items) {
    const account = textOf(recordOf(item['account'])['login'])
    const verdict = granted(account, item, `accept the new permissions of the app in the settings of ${account}`)
    if (!verdict.passed) return verdict
  }
  return pass(
    items
      .map((item) => textOf(recordOf(item['account'])['login']))
      .slice(0, 5)
      .join(', '),
  )
}

const checkToken = async (ask: Ask, get: Get): Promise<Account> => {
  let name: string | undefined
  let isFineGrained = false
  const token = await ask('token', get('/user'), ({ status, headers, body }) => {
    if (status !== 200) {
      return fail(
        `answered ${status}`,
        'create a new token with access to issues and pull requests of your repositories',
      )
    }
    name = textOf(body['login'])
    const scopes = headers.get('x-oauth-scopes')
    isFineGrained = scopes === null
    return scopes === null
      ? pass(`is @${name}`)
      : classicScopes(
          name,
          scopes.split(',').map((scope) => scope.trim()),
        )
  })
  return { checks: [token, ...(isFineGrained ? [await probe(ask, get)] : [])], name }
}

const classicScopes = (name: string, scopes: readonly string[]): Verdict => {
  if (scopes.includes('repo')) return pass(`is @${name}`)
  if (scopes.includes('public_repo')) return pass(`is @${name}; public repositories only`)
  return fail(
    `is @${name}; missing scope: repo`,
    'give the token the scope repo, or public_repo for public repositories',
  )
}

/** GitHub doesn't say what a fine-grained token may do. Reading shows some of it; writing would change something. */
const probe = async (ask: Ask, get: Get): Promise<Check> => {
  let repository: string | undefined
  const listed = await ask('permissions', get('/user/repos?per_page=1&sort=pushed'), ({ status, items }) => {
    const name = items[0]?.['full_name']
    repository = typeof name === 'string' && /^[\w.-]{1,100}\/[\w.-]{1,100}$/.test(name) ? name : undefined
    return repository === undefined
      ? fail(
          status === 200 ? 'no repository can be seen' : `answered ${status}`,
          'give the token access to the repositories',
        )
      : pass(repository)
  })
  if (repository === undefined) return listed
  const lacking: string[] = []
  for (const [permission, path] of PROBES) {
    const read = await ask(permission, get(`/repos/${repository}/${path}?per_page=1`), ({ status }) =>
      status === 403 || status === 404 ? fail(`answered ${status}`, 'grant it') : pass('readable'),
    )
    if (!read.passed) lacking.push(permission)
  }
  return checked(
    'permissions',
    lacking.length === 0
      ? pass(`${repository} can be read; whether it can be written shows only the first reply`)
      : fail(`missing in ${repository}: ${lacking.join(', ')}`, 'add the permissions to the token: read and write'),
  )
}

const PROBES = [
  ['issues', 'issues'],
  ['pull_requests', 'pulls'],
  ['contents', 'commits'],
] as const

type AppToken = { readonly ok: true; readonly token: string } | { readonly ok: false; readonly check: Check }

/** A JWT as GitHub requires: valid for at most ten minutes, issued a minute ago in case clocks differ. */
const appToken = (appId: string, privateKey: string, clock: Clock): AppToken => {
  const now = Math.floor(clock() / 1000)
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const text = `${part({ alg: 'RS256', typ: 'JWT' })}.${part({ iat: now - 60, exp: now + 300, iss: appId })}`
  try {
    return { ok: true, token: `${text}.${createSign('RSA-SHA256').update(text).sign(privateKey, 'base64url')}` }
  } catch {
    const remedy = "download a new private key from the app's page"
    return { ok: false, check: checked('app', fail("the private key can't be read", remedy)) }
  }
}

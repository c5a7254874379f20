import { createSign } from 'node:crypto'
import type { Clock } from '../../domain/clock.ts'
import {
  type Response,
  createRequester,
  type Check,
  checked,
  type CheckParts,
  missing,
  fail,
  recordOf,
  passed,
  type Request,
  textOf,
  type Verdict,
  pass,
} from '../checks.ts'
import type { GithubSettings } from './settings.ts'

/** Checks that GitHub accepts the token or app, and that a webhook secret is set. */
export const checkGithub = async (given: GithubSettings, parts: CheckParts): Promise<readonly Check[]> => {
  const ask = createRequester(parts)
  const { token, appId, privateKey, webhookSecret, bot, apiUrl = 'https://api.github.com' } = given
  const get = (path: string, bearer: string): Request => ({
    url: `${apiUrl}${path}`,
    headers: { authorization: `Bearer ${bearer}`, accept: 'application/vnd.github+json', 'user-agent': 'coppice' },
  })
  const app = appId !== undefined && privateKey !== undefined ? appToken(appId, privateKey, parts.clock) : undefined
  return [
    ...(app === undefined ? [] : [app.ok ? await ask('app', get('/app', app.token), githubApp) : app.check]),
    ...(token === undefined ? [] : [await ask('token', get('/user', token), githubUser)]),
    ...(token === undefined && app === undefined
      ? [missing('token', 'GITHUB_TOKEN, or GITHUB_APP_ID with GITHUB_APP_PRIVATE_KEY')]
      : []),
    webhookSecret === undefined
      ? missing('webhook secret', 'GITHUB_WEBHOOK_SECRET')
      : passed('webhook secret', 'set; the first delivery will verify it'),
    ...(bot === undefined ? [] : [passed('name', `responds to @${bot.replace(/^@/, '')}`)]),
  ]
}

const githubUser = ({ status, body }: Response): Verdict =>
  status === 200
    ? pass(`is @${textOf(body['login'])}`)
    : fail(`answered ${status}`, 'create a new token with access to issues and pull requests of your repositories')

const githubApp = ({ status, body }: Response): Verdict =>
  status === 200
    ? permitted(`is ${textOf(body['name'])}`, recordOf(body['permissions']))
    : fail(`answered ${status}`, 'check that the app ID and the private key belong together')

/** To clone and push, to reply, to open pull requests. An answer without permissions says nothing about them. */
const permitted = (who: string, permissions: Readonly<Record<string, unknown>>): Verdict => {
  const lacking = needed.filter(([name]) => permissions[name] !== 'write').map(([, title]) => title)
  if (lacking.length === 0 || Object.keys(permissions).length === 0) return pass(who)
  return fail(
    `${who}, without write permission for ${lacking.join(', ')}`,
    "grant it on the app's page, then accept it for each installation",
  )
}

const needed = [
  ['contents', 'Contents'],
  ['issues', 'Issues'],
  ['pull_requests', 'Pull requests'],
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

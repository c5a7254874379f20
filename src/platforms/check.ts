import { createSign } from 'node:crypto'
import type { Clock } from '../domain/clock.ts'
import type { PlatformSettings, RemotePlatformName } from './settings.ts'
import { slackScopes } from './slack/setup.ts'

/** One question to the service itself, or to the configuration, and what came of it. */
export type Check = {
  readonly what: string
  readonly passed: boolean
  readonly detail: string
  readonly remedy: string | undefined
}

export type CheckParts = {
  readonly fetch: typeof fetch
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** Asks the service whether it takes what is configured. Without an SDK: one request each, and nothing is changed. */
export const checkPlatform = async (
  name: RemotePlatformName,
  settings: PlatformSettings,
  parts: CheckParts,
): Promise<readonly Check[]> => {
  const ask = asker(parts)
  switch (name) {
    case 'github':
      return github(settings.github, ask, parts.clock)
    case 'slack':
      return slack(settings.slack, ask)
    case 'discord':
      return discord(settings.discord, ask)
    case 'telegram':
      return telegram(settings.telegram, ask)
  }
}

type Ask = (what: string, request: Request, read: (answer: Answer) => Verdict) => Promise<Check>
type Request = {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly method?: 'GET' | 'POST'
}
type Answer = { readonly status: number; readonly headers: Headers; readonly body: Readonly<Record<string, unknown>> }
type Verdict = { readonly passed: boolean; readonly detail: string; readonly remedy?: string }

const TIMEOUT_MS = 10_000

const asker =
  ({ fetch, signal }: CheckParts): Ask =>
  async (what, { url, headers = {}, method = 'GET' }, read) => {
    try {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)])
      const response = await fetch(url, { method, headers, signal: limit, redirect: 'error' })
      const answer: unknown = await response.json().catch(() => undefined)
      return checked(what, read({ status: response.status, headers: response.headers, body: recordOf(answer) }))
    } catch (error) {
      signal.throwIfAborted()
      return checked(what, {
        passed: false,
        detail: `could not be reached: ${reasonOf(error)}`,
        remedy: 'look whether this machine can reach it, then try again',
      })
    }
  }

const slack = async (given: PlatformSettings['slack'], ask: Ask): Promise<Check[]> => {
  const { botToken, appToken, signingSecret, allowedUsers = [], apiUrl = 'https://slack.com/api' } = given
  const post = (method: string, token: string): Request => ({
    url: `${apiUrl}/${method}`,
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
  })
  return [
    botToken === undefined
      ? missing('bot token', 'SLACK_BOT_TOKEN')
      : await ask('bot token', post('auth.test', botToken), slackBot),
    ...(appToken === undefined
      ? []
      : [await ask('app-level token', post('apps.connections.open', appToken), slackApp)]),
    ...(signingSecret === undefined
      ? []
      : [passed('signing secret', 'set; the first event shows whether it is right')]),
    ...(appToken === undefined && signingSecret === undefined
      ? [missing('way in', 'SLACK_APP_TOKEN (Socket Mode) or SLACK_SIGNING_SECRET (HTTP)')]
      : []),
    listed(allowedUsers, 'SLACK_ALLOWED_USERS', /^(?:[TE][A-Z0-9]+\/)?[UW][A-Z0-9]+$/, 'U0123ABCD'),
  ]
}

const slackBot = ({ headers, body }: Answer): Verdict => {
  if (body['ok'] !== true) return no(said(body['error']), 'copy the Bot User OAuth Token (xoxb-…) again')
  const scopes = headers
    .get('x-oauth-scopes')
    ?.split(',')
    .map((scope) => scope.trim())
  const lacking = scopes === undefined ? [] : slackScopes.filter((scope) => !scopes.includes(scope))
  return lacking.length === 0
    ? yes(`${said(body['user'])} in ${said(body['team'])}`)
    : no(`lacks ${lacking.join(', ')}`, 'add the scopes under OAuth & Permissions and install the app again')
}

const slackApp = ({ body }: Answer): Verdict =>
  body['ok'] === true
    ? yes('Socket Mode can be opened')
    : no(said(body['error']), 'make an App-Level Token (xapp-…) with connections:write, and turn Socket Mode on')

const github = async (given: PlatformSettings['github'], ask: Ask, clock: Clock): Promise<Check[]> => {
  const { token, appId, privateKey, webhookSecret, bot, apiUrl = 'https://api.github.com' } = given
  const get = (path: string, bearer: string): Request => ({
    url: `${apiUrl}${path}`,
    headers: { authorization: `Bearer ${bearer}`, accept: 'application/vnd.github+json', 'user-agent': 'coppice' },
  })
  const app = appId !== undefined && privateKey !== undefined ? appToken(appId, privateKey, clock) : undefined
  return [
    ...(app === undefined ? [] : [app.ok ? await ask('app', get('/app', app.token), githubApp) : app.check]),
    ...(token === undefined ? [] : [await ask('token', get('/user', token), githubUser)]),
    ...(token === undefined && app === undefined
      ? [missing('token', 'GITHUB_TOKEN, or GITHUB_APP_ID with GITHUB_APP_PRIVATE_KEY')]
      : []),
    webhookSecret === undefined
      ? missing('webhook secret', 'GITHUB_WEBHOOK_SECRET')
      : passed('webhook secret', 'set; the first delivery shows whether it is right'),
    ...(bot === undefined ? [] : [passed('name', `listens to @${bot.replace(/^@/, '')}`)]),
  ]
}

const githubUser = ({ status, body }: Answer): Verdict =>
  status === 200
    ? yes(`is @${said(body['login'])}`)
    : no(`answered ${status}`, 'make a new token with access to issues and pull requests of the repositories')

const githubApp = ({ status, body }: Answer): Verdict =>
  status === 200
    ? yes(`is ${said(body['name'])}`)
    : no(`answered ${status}`, 'look whether the app id and the private key belong together')

type AppToken = { readonly ok: true; readonly token: string } | { readonly ok: false; readonly check: Check }

/** As GitHub wants it: signed with the app's key, good for ten minutes at most, a minute back for clocks that are off. */
const appToken = (appId: string, privateKey: string, clock: Clock): AppToken => {
  const now = Math.floor(clock() / 1000)
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const text = `${part({ alg: 'RS256', typ: 'JWT' })}.${part({ iat: now - 60, exp: now + 300, iss: appId })}`
  try {
    return { ok: true, token: `${text}.${createSign('RSA-SHA256').update(text).sign(privateKey, 'base64url')}` }
  } catch {
    const remedy = 'download a new private key from the page of the app'
    return { ok: false, check: checked('app', no('the private key cannot be read', remedy)) }
  }
}

const discord = async (given: PlatformSettings['discord'], ask: Ask): Promise<Check[]> => {
  const { botToken, allowedUsers = [], apiUrl = 'https://discord.com/api' } = given
  const get = (path: string, token: string): Request => ({
    url: `${apiUrl}/v10${path}`,
    headers: { authorization: `Bot ${token}` },
  })
  return [
    ...(botToken === undefined
      ? [missing('bot token', 'DISCORD_BOT_TOKEN')]
      : [
          await ask('bot token', get('/users/@me', botToken), discordBot),
          await ask('message content', get('/applications/@me', botToken), discordIntent),
        ]),
    listed(allowedUsers, 'DISCORD_ALLOWED_USERS', /^\d{5,25}$/, '123456789012345678'),
  ]
}

const discordBot = ({ status, body }: Answer): Verdict =>
  status === 200 ? yes(`is ${said(body['username'])}`) : no(`answered ${status}`, 'reset the token and copy it again')

/** The two flags of an application that may read what is written: granted, and granted while it is small. */
const MESSAGE_CONTENT = (1 << 18) | (1 << 19)

const discordIntent = ({ status, body }: Answer): Verdict =>
  status === 200 && (Number(body['flags'] ?? 0) & MESSAGE_CONTENT) !== 0
    ? yes('may be read')
    : no('may not be read', 'turn on Message Content Intent on the Bot page of the application')

const telegram = async (given: PlatformSettings['telegram'], ask: Ask): Promise<Check[]> => {
  const { botToken, webhookUrl, webhookSecret, allowedUsers = [], apiUrl = 'https://api.telegram.org' } = given
  return [
    botToken === undefined
      ? missing('bot token', 'TELEGRAM_BOT_TOKEN')
      : await ask('bot token', { url: `${apiUrl}/bot${botToken}/getMe` }, telegramBot),
    ...(webhookUrl !== undefined && webhookSecret === undefined
      ? [missing('webhook secret', 'TELEGRAM_WEBHOOK_SECRET')]
      : []),
    listed(allowedUsers, 'TELEGRAM_ALLOWED_USERS', /^\d{1,20}$/, '123456789'),
  ]
}

const telegramBot = ({ body }: Answer): Verdict => {
  if (body['ok'] !== true) return no(said(body['description']), 'ask @BotFather for the token again: /token')
  const bot = recordOf(body['result'])
  // With privacy mode a mention does not always arrive; what answers the bot and what names it as a command does.
  const hears = bot['can_read_all_group_messages'] === false ? '; in groups, replies and /command@bot only' : ''
  return yes(`is @${said(bot['username'])}${hears}`)
}

const listed = (users: readonly string[], variable: string, shape: RegExp, example: string): Check => {
  const odd = users.find((user) => user !== '*' && !shape.test(user))
  if (users.length === 0) {
    return checked('who may speak', no('nobody', `list user ids: ${variable}=${example}`))
  }
  return checked(
    'who may speak',
    odd === undefined
      ? yes(users.includes('*') ? 'everybody' : users.join(', '))
      : no(`"${odd.slice(0, 40)}" is no user id`, `user ids look like ${example}; names can change hands`),
  )
}

const yes = (detail: string): Verdict => ({ passed: true, detail })
const no = (detail: string, remedy: string): Verdict => ({ passed: false, detail, remedy })
const checked = (what: string, verdict: Verdict): Check => ({ what, remedy: undefined, ...verdict })
const passed = (what: string, detail: string): Check => checked(what, yes(detail))
const missing = (what: string, where: string): Check => checked(what, no('missing', `set ${where}`))

const recordOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}

const said = (value: unknown): string => (typeof value === 'string' ? value.slice(0, 100) : 'no sensible answer')

/** What `fetch` throws says little; the cause says what happened. */
const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  if (error.name === 'TimeoutError') return `no answer within ${TIMEOUT_MS / 1000} s`
  return error.cause instanceof Error ? error.cause.message || error.message : error.message
}

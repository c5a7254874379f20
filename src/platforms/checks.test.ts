import { generateKeyPairSync, verify } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Check } from './checks.ts'
import { anyDescriptor, type RemotePlatformName } from './remote.ts'
import { slackScopes } from './slack/setup.ts'

type Answer = { readonly status?: number; readonly body: unknown; readonly headers?: Record<string, string> }

const server = createServer((request, response) => {
  asked.push({ url: `${request.method} ${request.url}`, authorization: request.headers.authorization ?? '' })
  const { status = 200, body, headers = {} } = answers[request.url ?? ''] ?? { status: 404, body: {} }
  response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body))
})
let asked: { url: string; authorization: string }[] = []
let answers: Record<string, Answer> = {}
let apiUrl = ''
beforeAll(async () => {
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => server.close())
beforeEach(() => {
  asked = []
  answers = {}
})

const check = (name: RemotePlatformName, given: Record<string, unknown>, url = apiUrl): Promise<readonly Check[]> => {
  const parts = { fetch, clock: () => 1_712_345_678_000, signal: new AbortController().signal }
  return anyDescriptor(name).check({ apiUrl: url, ...given }, parts)
}
const lines = (checks: readonly Check[]): string[] =>
  checks.map(({ what, passed, detail }) => `${passed ? 'pass' : 'fail'} ${what}: ${detail}`)

const notCheckable =
  'pass events, buttons and /coppice: not checkable with these tokens; compare the app with the manifest (events: app_mention, message.im)'

test('Slack: both tokens are asked for, and who may speak is looked at', async () => {
  answers = {
    '/auth.test': {
      body: { ok: true, user: 'coppice', team: 'Team' },
      headers: { 'x-oauth-scopes': [...slackScopes, 'users:read'].join(', ') },
    },
    '/apps.connections.open': { body: { ok: true, url: 'wss://x' } },
  }
  const checks = await check('slack', { botToken: 'xoxb-1', appToken: 'xapp-1', allowedUsers: ['U1', 'T2/W3'] })
  expect(lines(checks)).toEqual([
    'pass bot token: coppice in Team',
    'pass app-level token: Socket Mode works',
    notCheckable,
    'pass allowed users: U1, T2/W3',
  ])
  expect(asked).toEqual([
    { url: 'POST /auth.test', authorization: 'Bearer xoxb-1' },
    { url: 'POST /apps.connections.open', authorization: 'Bearer xapp-1' },
  ])
})

test('Slack: what is wrong is said, with what to do', async () => {
  answers = {
    '/auth.test': {
      body: { ok: true },
      headers: { 'x-oauth-scopes': slackScopes.filter((scope) => !/^(?:files|im):/.test(scope)).join(',') },
    },
    '/apps.connections.open': { body: { ok: false, error: 'not_allowed_token_type' } },
  }
  const checks = await check('slack', { botToken: 'xoxb-1', appToken: 'xapp-1', allowedUsers: ['@ada'] })
  expect(lines(checks)).toEqual([
    'fail bot token: missing scopes: files:read (files attached to a message, and long pastes), im:history (direct messages), im:read (finding missed direct messages)',
    'fail app-level token: not_allowed_token_type',
    notCheckable,
    `fail allowed users: "@ada" isn't a valid user ID`,
  ])
  expect(checks.every(({ passed, remedy }) => passed || remedy !== undefined)).toBe(true)
  expect(lines(await check('slack', {}))).toEqual([
    'fail bot token: missing',
    'fail connection: missing',
    'fail allowed users: none',
  ])
})

test('GitHub: a token is asked for who it is, and what it may do', async () => {
  const scoped = (scopes: string) => ({ body: { login: 'ada' }, headers: { 'x-oauth-scopes': scopes } })
  answers = { '/user': scoped('gist, repo') }
  const checks = await check('github', { token: 'ghp_1', webhookSecret: 's', bot: '@coppice' })
  expect(lines(checks)).toEqual([
    'pass token: is @ada',
    'pass webhook secret: set; the first delivery will verify it',
    'pass name: responds to @coppice',
  ])
  expect(asked[0]?.authorization).toBe('Bearer ghp_1')
  answers = { '/user': scoped('public_repo') }
  expect(lines(await check('github', { token: 'ghp_1' }))[0]).toBe('pass token: is @ada; public repositories only')
  answers = { '/user': scoped('gist') }
  expect(lines(await check('github', { token: 'ghp_1' }))).toEqual([
    'fail token: is @ada; missing scope: repo',
    'fail webhook secret: missing',
    'fail name: not set; responds to @ada, the owner of the token',
  ])
  answers = { '/user': { status: 401, body: {} } }
  expect(lines(await check('github', { token: 'ghp_1' }))).toEqual([
    'fail token: answered 401',
    'fail webhook secret: missing',
  ])
})

test('GitHub: a fine-grained token is tried, without writing anything', async () => {
  const repositories = '/user/repos?per_page=1&sort=pushed'
  answers = {
    '/user': { body: { login: 'ada' } },
    [repositories]: { body: [{ full_name: 'acme/app' }] },
    '/repos/acme/app/issues?per_page=1': { body: [] },
    '/repos/acme/app/pulls?per_page=1': { body: [] },
    '/repos/acme/app/commits?per_page=1': { status: 409, body: { message: 'Git Repository is empty.' } },
  }
  const given = { token: 'github_pat_1', webhookSecret: 's', bot: 'coppice' }
  expect(lines(await check('github', given))[1]).toBe(
    'pass permissions: acme/app can be read; whether it can be written shows only the first reply',
  )
  answers['/repos/acme/app/pulls?per_page=1'] = { status: 403, body: { message: 'Resource not accessible' } }
  expect(lines(await check('github', given))[1]).toBe('fail permissions: missing in acme/app: pull_requests')
  answers[repositories] = { body: [] }
  expect(lines(await check('github', given))[1]).toBe('fail permissions: no repository can be seen')
  expect(asked.every(({ url }) => url.startsWith('GET '))).toBe(true)
})

const wholeApp = {
  name: 'Coppice',
  slug: 'coppice-app',
  permissions: { metadata: 'read', contents: 'write', issues: 'write', pull_requests: 'admin', checks: 'read' },
  events: ['issues', 'issue_comment', 'pull_request', 'pull_request_review', 'pull_request_review_comment', 'push'],
}
const { permissions, events } = wholeApp

test('GitHub: an app proves itself with its key', async () => {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const pem = privateKey.export({ type: 'pkcs1', format: 'pem' })
  const installations = '/app/installations?per_page=100'
  const installed = { account: { login: 'acme' }, permissions, events }
  answers = { '/app': { body: wholeApp }, [installations]: { body: [installed] } }
  const given = { appId: '12', webhookSecret: 's', privateKey: pem }
  expect(lines(await check('github', given))).toEqual([
    'pass app: is Coppice',
    'pass installations: acme',
    'pass webhook secret: set; the first delivery will verify it',
    'pass name: responds to @coppice-app',
  ])
  const [head = '', payload = '', signature = ''] = (asked[0]?.authorization ?? '').replace('Bearer ', '').split('.')
  expect(verify('RSA-SHA256', Buffer.from(`${head}.${payload}`), publicKey, Buffer.from(signature, 'base64url'))).toBe(
    true,
  )
  expect(JSON.parse(Buffer.from(payload, 'base64url').toString())).toEqual({
    iat: 1_712_345_618,
    exp: 1_712_345_978,
    iss: '12',
  })
  answers['/app'] = {
    body: { ...wholeApp, permissions: { ...permissions, contents: 'read' }, events: events.slice(1) },
  }
  answers[installations] = { body: [installed, { ...installed, account: { login: 'beta' }, permissions: {} }] }
  expect(lines(await check('github', given)).slice(0, 2)).toEqual([
    'fail app: is Coppice; missing permissions: contents: write; missing events: issues',
    'fail installations: beta; missing permissions: metadata: read, contents: write, issues: write, pull_requests: write',
  ])
  answers[installations] = { body: [] }
  expect(lines(await check('github', given))[1]).toBe('fail installations: none')
  const broken = await check('github', { ...given, privateKey: '-----BEGIN RSA PRIVATE KEY-----\nx' })
  expect(lines(broken)[0]).toBe("fail app: the private key can't be read")
})

test('Discord: the token, and whether it may read what is written', async () => {
  answers = {
    '/v10/users/@me': { body: { username: 'coppice' } },
    '/v10/applications/@me': { body: { flags: 1 << 19 } },
    '/v10/users/@me/guilds': { body: [{ name: 'Team', permissions: '8' }] },
  }
  const given = { botToken: 'abc', allowedUsers: ['123456789012345678'] }
  expect(lines(await check('discord', given))).toEqual([
    'pass bot token: is coppice',
    'pass message content: can be read',
    'pass permissions: complete in 1 server',
    'pass allowed users: 123456789012345678',
  ])
  expect(asked[0]?.authorization).toBe('Bot abc')
  // View Channels, Send Messages, Read Message History, Create Public Threads; and one that isn't used.
  const permissions = String((1n << 10n) | (1n << 11n) | (1n << 16n) | (1n << 35n) | (1n << 20n))
  answers = {
    '/v10/users/@me': { status: 401, body: {} },
    '/v10/applications/@me': { body: { flags: 1 } },
    '/v10/users/@me/guilds': {
      body: [{ name: 'Team', permissions }, { name: 'Odd' }, { name: 'Fine', permissions: '8' }],
    },
  }
  expect(lines(await check('discord', { botToken: 'abc', allowedUsers: ['*'] }))).toEqual([
    'fail bot token: answered 401',
    "fail message content: can't be read",
    'fail permissions: Team lacks Send Messages in Threads, Add Reactions; Odd lacks View Channels, Send Messages, Create Public Threads, Send Messages in Threads, Read Message History, Add Reactions',
    'pass allowed users: everybody',
  ])
  answers = { ...answers, '/v10/users/@me/guilds': { body: [] } }
  expect(lines(await check('discord', given))[2]).toBe('fail permissions: the bot is in no server')
})

test('Telegram: the token, what it sees in groups, and how updates arrive', async () => {
  const own = (bot: Record<string, unknown>): Answer => ({ body: { ok: true, result: { username: 'bot', ...bot } } })
  const webhook = (result: Record<string, unknown>): Answer => ({ body: { ok: true, result } })
  const given = { botToken: '1:a', allowedUsers: ['7'] }
  answers = { '/bot1:a/getMe': own({}), '/bot1:a/getWebhookInfo': webhook({ url: '' }) }
  expect(lines(await check('telegram', given))).toEqual([
    'pass bot token: is @bot',
    'pass updates: by polling',
    'pass allowed users: 7',
  ])
  const lineOf = async (bot: Record<string, unknown>): Promise<string | undefined> => {
    answers = { ...answers, '/bot1:a/getMe': own(bot) }
    return lines(await check('telegram', given))[0]
  }
  expect(await lineOf({ can_read_all_group_messages: false })).toContain('privacy mode is on')
  expect(await lineOf({ can_join_groups: false })).toContain("can't be added to groups")

  const url = 'https://x.example/webhooks/telegram'
  const byWebhook = { ...given, webhookUrl: url, webhookSecret: 's' }
  const updatesLine = async (info: Record<string, unknown>): Promise<string | undefined> => {
    answers = { '/bot1:a/getMe': own({}), '/bot1:a/getWebhookInfo': webhook({ url, ...info }) }
    return lines(await check('telegram', byWebhook))[1]
  }
  expect(await updatesLine({ allowed_updates: ['message', 'callback_query'] })).toBe('pass updates: by webhook')
  expect(await updatesLine({})).toBe('pass updates: by webhook')
  expect(await updatesLine({ allowed_updates: ['message'] })).toBe(
    "fail updates: the webhook doesn't get: callback_query",
  )
  const failing = { last_error_date: 1_712_345_600, last_error_message: 'Connection refused' }
  expect(await updatesLine(failing)).toBe("fail updates: Telegram couldn't deliver to the webhook: Connection refused")
  expect(await updatesLine({ ...failing, last_error_date: 1_712_000_000 })).toBe('pass updates: by webhook')
  expect(await updatesLine({ url: '' })).toContain('once the server registers it')

  const refused = { status: 401, body: { ok: false, description: 'Unauthorized' } }
  answers = { '/bot1:a/getMe': refused, '/bot1:a/getWebhookInfo': refused }
  expect(lines(await check('telegram', { ...given, webhookUrl: 'https://x' }))).toEqual([
    'fail bot token: Unauthorized',
    'fail updates: Unauthorized',
    'fail webhook secret: missing',
    'pass allowed users: 7',
  ])
})

test.each(['github', 'slack', 'discord', 'telegram'] as const)('%s that cannot be reached is said so', async (name) => {
  const dead = createServer()
  await new Promise<void>((ready) => dead.listen(0, '127.0.0.1', ready))
  const { port } = dead.address() as AddressInfo
  await new Promise((closed) => dead.close(closed))
  const tokens = { token: 'secret', botToken: 'secret' }
  const [first] = await check(name, tokens, `http://127.0.0.1:${port}`)
  expect(first?.passed).toBe(false)
  expect(first?.detail).toMatch(/couldn't connect: .*ECONNREFUSED/)
})

test('an answer that is no answer fails without a fuss', async () => {
  answers = { '/auth.test': { body: '<html>' } }
  expect(lines(await check('slack', { botToken: 'xoxb-1' }))[0]).toBe('fail bot token: unexpected response')
})

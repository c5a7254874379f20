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
    'pass allowed users: U1, T2/W3',
  ])
  expect(asked).toEqual([
    { url: 'POST /auth.test', authorization: 'Bearer xoxb-1' },
    { url: 'POST /apps.connections.open', authorization: 'Bearer xapp-1' },
  ])
})

test('Slack: what is wrong is said, with what to do', async () => {
  answers = {
    '/auth.test': { body: { ok: true }, headers: { 'x-oauth-scopes': 'chat:write' } },
    '/apps.connections.open': { body: { ok: false, error: 'not_allowed_token_type' } },
  }
  const checks = await check('slack', { botToken: 'xoxb-1', appToken: 'xapp-1', allowedUsers: ['@ada'] })
  expect(lines(checks)).toEqual([
    'fail bot token: missing scopes: app_mentions:read, channels:history, groups:history, im:history, mpim:history',
    'fail app-level token: not_allowed_token_type',
    `fail allowed users: "@ada" isn't a valid user ID`,
  ])
  expect(checks.every(({ remedy }) => remedy !== undefined)).toBe(true)
  expect(lines(await check('slack', {}))).toEqual([
    'fail bot token: missing',
    'fail connection: missing',
    'fail allowed users: none',
  ])
})

test('GitHub: a token is asked for who it is', async () => {
  answers = { '/user': { body: { login: 'coppice-bot' } } }
  const checks = await check('github', { token: 'ghp_1', webhookSecret: 's', bot: '@coppice-bot' })
  expect(lines(checks)).toEqual([
    'pass token: is @coppice-bot',
    'pass webhook secret: set; the first delivery will verify it',
    'pass name: responds to @coppice-bot',
  ])
  expect(asked[0]?.authorization).toBe('Bearer ghp_1')
  answers = { '/user': { status: 401, body: {} } }
  expect(lines(await check('github', { token: 'ghp_1' }))).toEqual([
    'fail token: answered 401',
    'fail webhook secret: missing',
  ])
})

test('GitHub: an app proves itself with its key', async () => {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const pem = privateKey.export({ type: 'pkcs1', format: 'pem' })
  answers = { '/app': { body: { name: 'Coppice' } } }
  const given = { appId: '12', webhookSecret: 's' }
  expect(lines(await check('github', { ...given, privateKey: pem }))[0]).toBe('pass app: is Coppice')
  const permissions = { contents: 'read', issues: 'write', metadata: 'read' }
  answers = { '/app': { body: { name: 'Coppice', permissions } } }
  expect(lines(await check('github', { ...given, privateKey: pem }))[0]).toBe(
    'fail app: is Coppice, without write permission for Contents, Pull requests',
  )
  const [head = '', payload = '', signature = ''] = (asked[0]?.authorization ?? '').replace('Bearer ', '').split('.')
  expect(verify('RSA-SHA256', Buffer.from(`${head}.${payload}`), publicKey, Buffer.from(signature, 'base64url'))).toBe(
    true,
  )
  expect(JSON.parse(Buffer.from(payload, 'base64url').toString())).toEqual({
    iat: 1_712_345_618,
    exp: 1_712_345_978,
    iss: '12',
  })
  const broken = await check('github', { ...given, privateKey: '-----BEGIN RSA PRIVATE KEY-----\nx' })
  expect(lines(broken)[0]).toBe("fail app: the private key can't be read")
})

test('Discord: the token, and whether it may read what is written', async () => {
  answers = {
    '/v10/users/@me': { body: { username: 'coppice' } },
    '/v10/applications/@me': { body: { flags: 1 << 19 } },
  }
  const given = { botToken: 'abc', allowedUsers: ['123456789012345678'] }
  expect(lines(await check('discord', given))).toEqual([
    'pass bot token: is coppice',
    'pass message content: can be read',
    'pass allowed users: 123456789012345678',
  ])
  expect(asked[0]?.authorization).toBe('Bot abc')
  answers = { '/v10/users/@me': { status: 401, body: {} }, '/v10/applications/@me': { body: { flags: 1 } } }
  expect(lines(await check('discord', { botToken: 'abc', allowedUsers: ['*'] }))).toEqual([
    'fail bot token: answered 401',
    "fail message content: can't be read",
    'pass allowed users: everybody',
  ])
})

test('Telegram: the token', async () => {
  answers = { '/bot1:a/getMe': { body: { ok: true, result: { username: 'coppice_bot' } } } }
  const given = { botToken: '1:a', allowedUsers: ['7'] }
  expect(lines(await check('telegram', given))).toEqual(['pass bot token: is @coppice_bot', 'pass allowed users: 7'])
  const shy = { username: 'coppice_bot', can_read_all_group_messages: false }
  answers = { '/bot1:a/getMe': { body: { ok: true, result: shy } } }
  expect(lines(await check('telegram', given))[0]).toBe(
    'pass bot token: is @coppice_bot; in groups, replies and /command@bot only',
  )
  answers = { '/bot1:a/getMe': { status: 401, body: { ok: false, description: 'Unauthorized' } } }
  expect(lines(await check('telegram', { ...given, webhookUrl: 'https://x' }))).toEqual([
    'fail bot token: Unauthorized',
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

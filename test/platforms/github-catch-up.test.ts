import { generateKeyPairSync } from 'node:crypto'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { PlatformMemory } from '../../src/platforms/memory.ts'
import type { GithubSettings } from '../../src/platforms/github/settings.ts'
import { inboxOf, type Received } from '../helpers/inbox.ts'
import { memoryForTest } from '../helpers/platform-memory.ts'
import { until } from '../helpers/server-process.ts'
import { alice, type GithubDouble, makeGithub, startDouble } from './github-double.ts'

/* What happens after the server was away. GitHub's "Handling failed webhook deliveries" is what the double obeys. */

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
const pem = String(privateKey.export({ type: 'pkcs8', format: 'pem' }))
const start = Date.parse('2026-03-01T12:00:00Z')
const MINUTE = 60_000

let double: GithubDouble
let received: Received[]
let memory: PlatformMemory
let now: number
beforeEach(async () => {
  double = await startDouble()
  double.permissions.set('alice', { id: 5, permission: 'write' })
  received = []
  now = start
  memory = memoryForTest([{ conversationId: 'acme/app#42', lastActivityAt: start }], () => now)
})
afterEach(() => double.close())

/** Starts the server, waits until it has looked, and stops it again. */
const lookOnce = async (settings: GithubSettings): Promise<string[]> => {
  const given = { bot: 'coppice', apiUrl: double.url, ...settings }
  const before = await memory.get('deliveries-looked-at')
  const { platform, logged } = await makeGithub(given, {}, () => now, memory)
  await platform.start(
    inboxOf(async (message) => {
      const isKnown = received.some(({ deliveryId }) => deliveryId === message.deliveryId)
      if (!isKnown) received.push(message)
      return { outcome: isKnown ? 'duplicate' : 'accepted', id: message.deliveryId }
    }),
  )
  await until('it has looked', async () => {
    const after = await memory.get('deliveries-looked-at')
    return (
      (after !== undefined && after !== before) ||
      logged.join('').includes("couldn't look for missed GitHub deliveries") ||
      undefined
    )
  })
  await platform.stop()
  return logged
}

const attempt = (id: number, guid: string, at: number, status: number, event = 'issue_comment.created') => {
  const [name = '', action = null] = event.split('.')
  double.attempts.push({
    id,
    guid,
    delivered_at: new Date(at).toISOString(),
    status_code: status,
    event: name,
    action,
  })
}

const app = { appId: '7', privateKey: pem }

test('an app asks for what failed since it last looked, once each, and for nothing that was delivered', async () => {
  attempt(1, 'before the first start', now - 10 * MINUTE, 502)
  await lookOnce(app)
  expect(double.redelivered).toEqual([])
  now += 60 * MINUTE
  const down = start + 30 * MINUTE
  attempt(10, 'failed twice', down, 502)
  attempt(11, 'failed twice', down + MINUTE, 504)
  attempt(12, 'delivered later', down, 502)
  attempt(13, 'delivered later', down + 2 * MINUTE, 200)
  attempt(14, 'not for us', down, 502, 'push')
  attempt(15, 'not for us either', down, 502, 'issue_comment.edited')
  attempt(16, 'never answered', down - MINUTE, 0)
  for (let n = 0; n < 150; n++) attempt(1_000 + n, `delivered ${n}`, down + 3 * MINUTE, 200)
  await lookOnce(app)
  expect(double.redelivered).toEqual(['16', '11'])
})

test('what fails every time is not asked for for ever', async () => {
  await lookOnce(app)
  for (let n = 0; n < 6; n++) {
    now += 10 * MINUTE
    attempt(100 + n, 'always refused', now - MINUTE, 400)
    await lookOnce(app)
  }
  expect(double.redelivered).toEqual(['100', '101', '102'])
})

test('while GitHub is away nothing is missed: the next look begins where this one did', async () => {
  await lookOnce(app)
  attempt(1, 'failed', now + 20 * MINUTE, 502)
  now += 30 * MINUTE
  double.trouble = (line) => (line.includes('/hook/deliveries') ? { status: 503 } : undefined)
  expect((await lookOnce(app)).join('')).toContain("couldn't look for missed GitHub deliveries")
  double.trouble = undefined
  now += 30 * MINUTE
  await lookOnce(app)
  expect(double.redelivered).toEqual(['1'])
})

const token = { token: 'ghp_1' }
const hook = { id: 3, active: true, config: { url: 'https://coppice.example/webhooks/github' } }

test('a token that may see the repository’s webhook does the same with it', async () => {
  double.hooks = [{ ...hook, id: 2, config: { url: 'https://ci.example/hook' } }, hook]
  await lookOnce(token)
  now += 60 * MINUTE
  attempt(5, 'failed', now - 20 * MINUTE, 502)
  await lookOnce(token)
  expect(double.redelivered).toEqual(['5'])
  expect(double.requests.find((line) => line.startsWith('POST'))).toContain('/hooks/3/deliveries/5/attempts')
})

test('a token that may not reads the comments themselves, each once and as its delivery would have been', async () => {
  const issue = { id: 42, number: 42, title: 'Login is broken', body: 'It says 500', user: alice }
  double.issues.set('acme/app#42', issue)
  double.issues.set('acme/app#43', { ...issue, id: 43, number: 43 })
  const head = { ref: 'fix', sha: 'b'.repeat(40), repo: { full_name: 'acme/app' } }
  double.pulls.set('acme/app#44', { ...issue, number: 44, head, base: { repo: head.repo } })
  await lookOnce(token)
  now += 60 * MINUTE
  const down = new Date(start + 30 * MINUTE).toISOString()
  const say = (thread: string, body: string, more: object = {}) =>
    Object.assign(double.say(thread, alice, body), { created_at: down, updated_at: down, ...more })
  const asked = say('acme/app#42', '@coppice fix it')
  say('acme/app#43', '@coppice this one too')
  say('acme/app#42', 'nothing for the bot')
  say('acme/app#42', '@coppice an edited one', { updated_at: new Date(start + 31 * MINUTE).toISOString() })
  say('acme/app#42', '@coppice an old one, edited', {
    created_at: new Date(start - 60 * MINUTE).toISOString(),
  })
  say('acme/app#42', '@coppice from a stranger', { user: { id: 66, login: 'mallory', type: 'User' } })
  say('acme/app#42', '@coppice of our own\n\n<!-- coppice:r.0 -->')
  const later = new Date(start + 32 * MINUTE).toISOString()
  double.reviewComment('acme/app#44', '@coppice and here', { user: alice, created_at: later, updated_at: later })
  await lookOnce(token)
  expect(received.map(({ conversationId, text }) => [conversationId, text])).toEqual([
    ['acme/app#42', 'fix it'],
    ['acme/app#43', 'this one too'],
    ['acme/app#44', 'and here'],
  ])
  expect(received[0]?.deliveryId).toBe(`issue_comment comment:${asked.id}`)
  expect(received[2]?.details.replyTo).toMatch(/^review-comment:/)
  now += MINUTE
  await lookOnce(token)
  expect(received).toHaveLength(3)
})

test('a comment whose author cannot be asked about is read again', async () => {
  double.issues.set('acme/app#42', { id: 42, number: 42, title: 'x', body: '', user: alice })
  await lookOnce(token)
  const down = new Date(start + 10 * MINUTE).toISOString()
  Object.assign(double.say('acme/app#42', alice, '@coppice fix it'), { created_at: down, updated_at: down })
  now += 30 * MINUTE
  double.trouble = (line) => (line.includes('/permission') ? { status: 500 } : undefined)
  await lookOnce(token)
  expect(received).toEqual([])
  double.trouble = undefined
  now += 30 * MINUTE
  await lookOnce(token)
  expect(received.map(({ text }) => text)).toEqual(['fix it'])
})

test('a look that began with a clock that was ahead costs no delivery', async () => {
  now = start + 7 * 24 * 60 * MINUTE
  await lookOnce(app)
  now = start + 60 * MINUTE
  attempt(1, 'failed', start + 30 * MINUTE, 502)
  await lookOnce(app)
  expect(double.redelivered).toEqual(['1'])
})

test('an outage with more failures than one look takes is caught up on by the next looks', async () => {
  await lookOnce(app)
  now += 60 * MINUTE
  for (let n = 0; n < 230; n++) attempt(n, `failed ${n}`, start + 10 * MINUTE + n * 1_000, 502)
  for (const expected of [100, 200, 230, 230]) {
    await lookOnce(app)
    now += 10 * MINUTE
    expect(double.redelivered).toHaveLength(expected)
    // What is asked for again is delivered.
    const known = new Set(double.attempts.filter(({ id }) => id >= 1_000).map(({ guid }) => guid))
    for (const id of double.redelivered) {
      if (!known.has(`failed ${id}`)) attempt(1_000 + Number(id), `failed ${id}`, now - 9 * MINUTE, 200)
    }
  }
})

test('a delivery that GitHub does not redeliver any more holds up no other', async () => {
  await lookOnce(app)
  now += 60 * MINUTE
  attempt(1, 'gone', start + 10 * MINUTE, 502)
  attempt(2, 'failed', start + 11 * MINUTE, 502)
  double.trouble = (line) => (line.includes('/deliveries/1/attempts') ? { status: 404 } : undefined)
  await lookOnce(app)
  expect(double.redelivered).toEqual(['2'])
})

const missedIn = (thread: string, body: string, minute: number, more: object = {}): void => {
  const at = new Date(start + minute * MINUTE).toISOString()
  Object.assign(double.say(thread, alice, body), { created_at: at, updated_at: at, ...more })
}
const issueIn = (thread: string, number: number): void => {
  double.issues.set(`${thread}#${number}`, { id: number, number, title: 'x', body: '', user: alice })
}

test('a repository that is gone holds up no other', async () => {
  memory = memoryForTest(
    ['acme/gone#1', 'acme/app#42'].map((conversationId) => ({ conversationId, lastActivityAt: start })),
    () => now,
  )
  issueIn('acme/app', 42)
  await lookOnce(token)
  now += 60 * MINUTE
  missedIn('acme/app#42', '@coppice fix it', 30)
  double.trouble = (line) => (line.includes('/repos/acme/gone/') ? { status: 404 } : undefined)
  await lookOnce(token)
  expect(received.map(({ text }) => text)).toEqual(['fix it'])
  expect(await memory.get('deliveries-looked-at')).toBe(String(now))
})

test('a comment that cannot be handled yet holds up no other, and is read again', async () => {
  issueIn('acme/app', 42)
  await lookOnce(token)
  now += 60 * MINUTE
  const mallory = { id: 66, login: 'mallory', type: 'User' }
  missedIn('acme/app#42', '@coppice from a stranger', 20, { user: mallory })
  missedIn('acme/app#41', '@coppice in an issue that was deleted', 25)
  missedIn('acme/app#42', '@coppice fix it', 30)
  double.trouble = (line) => (line.includes('/mallory/permission') ? { status: 403 } : undefined)
  expect((await lookOnce(token)).join('')).toContain("couldn't look for missed GitHub deliveries")
  expect(received.map(({ text }) => text)).toEqual(['fix it'])
  double.trouble = undefined
  double.permissions.set('mallory', { id: 66, permission: 'write' })
  now += 30 * MINUTE
  await lookOnce(token)
  expect(received.map(({ text }) => text)).toEqual(['fix it', 'from a stranger'])
})

test('more comments than one look takes are handled by the next looks, in order', async () => {
  issueIn('acme/app', 42)
  await lookOnce(token)
  now += 60 * MINUTE
  for (let n = 0; n < 120; n++) missedIn('acme/app#42', `@coppice message ${n}`, 10 + n / 60)
  for (const expected of [50, 100, 120]) {
    await lookOnce(token)
    now += 10 * MINUTE
    expect(received).toHaveLength(expected)
  }
  expect(received.map(({ text }) => text)).toEqual(Array.from({ length: 120 }, (_, n) => `message ${n}`))
})

test('a comment that can never be handled is given up after an hour', async () => {
  issueIn('acme/app', 42)
  await lookOnce(token)
  missedIn('acme/app#42', '@coppice from a stranger', 5, { user: { id: 66, login: 'mallory', type: 'User' } })
  double.trouble = (line) => (line.includes('/mallory/permission') ? { status: 403 } : undefined)
  const looks: boolean[] = []
  for (let n = 0; n < 7; n++) {
    now += 10 * MINUTE
    await lookOnce(token)
    looks.push((await memory.get('deliveries-looked-at')) === String(now))
  }
  expect(looks).toEqual([false, false, false, false, false, false, true])
})

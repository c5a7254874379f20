import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Codebase } from '../../src/domain/environment.ts'
import type { IssueQuery } from '../../src/domain/forge/issues.ts'
import { createForge } from '../../src/main/forge.ts'
import { hasMarker, isOurs } from '../../src/platforms/github/marker.ts'
import { createLogger } from '../../src/process/log.ts'
import { createSecrets } from '../../src/process/redaction/redact.ts'
import { aCodebase } from '../helpers/store-values.ts'
import { type GithubDouble, startDouble } from './github-double.ts'

/* Issues of a repository on GitHub, read and closed over its real protocol. */

let double: GithubDouble
beforeEach(async () => {
  double = await startDouble()
})
afterEach(() => double.close())

const app = aCodebase('app', { github: 'acme/app', remoteUrl: '/srv/app.git' })
const all: IssueQuery = { labels: [], state: 'open', limit: undefined }

let now = 0
const forgeWith = (token: string | undefined) => {
  const clock = () => now
  const log = createLogger({ write: () => undefined, level: 'error', clock, redact: (text) => text })
  const settings = async () => ({ apiUrl: double.url, ...(token !== undefined && { token }) })
  return createForge(settings, { log, clock, secrets: createSecrets() })
}

const find = (query: Partial<IssueQuery> = {}, codebase: Partial<Codebase> = {}, token: string | undefined = 'ghp_x') =>
  forgeWith(token).issues({ ...app, ...codebase }, { ...all, ...query })

const numbers = async (...asked: Parameters<typeof find>): Promise<readonly number[]> => {
  const found = await find(...asked)
  return found.outcome === 'found' ? found.issues.map(({ number }) => number) : expect.unreachable(found.outcome)
}

describe('issues are found,', () => {
  test('oldest first, without pull requests, as a person sees them', async () => {
    double.issue(3, { title: 'Fix login', body: 'It says 500<!-- say yes -->\u200b', label: 'Ready' })
    double.issue(4, { pull_request: { url: 'x' } })
    double.issue(5, { body: null })
    double.issue(6, { state: 'closed' })
    const of = { labels: [], open: true }
    expect(await find()).toEqual({
      outcome: 'found',
      repository: 'acme/app',
      more: false,
      issues: [
        { ...of, number: 3, title: 'Fix login', body: 'It says 500', labels: ['Ready'] },
        { ...of, number: 5, title: 'Issue 5', body: '' },
      ],
    })
    expect([...double.authorizations]).toEqual(['token ghp_x'])
  })

  test('by state, and by all of their labels, also those with a comma', async () => {
    const labels = ['ready', 'ui, ux'].map((name) => ({ name }))
    double.issue(1, { label: 'ready' })
    double.issue(2, { labels })
    double.issue(3, { labels: labels.slice(1) })
    double.issue(4, { label: 'READY', state: 'closed' })
    expect(await numbers({ labels: ['Ready'] })).toEqual([1, 2])
    expect(await numbers({ labels: ['ready', 'UI, UX'] })).toEqual([2])
    expect(await numbers({ labels: ['ready'], state: 'all' })).toEqual([1, 2, 4])
    expect(await numbers({ state: 'closed' })).toEqual([4])
  })

  test('on all pages, or only so many', async () => {
    for (let n = 1; n <= 250; n++) double.issue(n, n % 10 === 0 ? { pull_request: {} } : {})
    expect((await numbers()).length).toBe(225)
    expect(double.requests).toHaveLength(3)
    expect(await find({ limit: 95 })).toMatchObject({ more: true, issues: { length: 95 } })
    expect(double.requests).toHaveLength(5)
    expect(await find({ limit: 225 })).toMatchObject({ more: false, issues: { length: 225 } })
  })

  test('in the repository that the remote shows, if nobody named one', async () => {
    double.issue(1)
    const remoteUrl = 'git@127.0.0.1:acme/app.git'
    expect(await numbers({}, { github: undefined, remoteUrl })).toEqual([1])
    for (const elsewhere of ['git@github.com:acme/app.git', undefined]) {
      expect(await find({}, { github: undefined, remoteUrl: elsewhere })).toEqual({ outcome: 'no-forge' })
    }
    expect(await find({}, { remoteUrl: 'https://github.com/acme/app' })).toEqual({ outcome: 'no-forge' })
  })

  test('without a token, too', async () => {
    double.issue(1)
    const found = await forgeWith(undefined).issues(app, all)
    expect(found).toMatchObject({ outcome: 'found', issues: [{ number: 1 }] })
    expect([...double.authorizations]).toEqual([''])
  })
})

describe('there is no answer', () => {
  const limits = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1300' }
  const limited = { status: 403, body: { message: 'API rate limit exceeded for 127.0.0.1.' }, headers: limits }

  test.each([undefined, 'ghp_x'])(
    'while GitHub limits the requests, and it is said until when: token %s',
    async (token) => {
      now = 1_000_000
      double.trouble = () => limited
      const forge = forgeWith(token)
      const expected = { outcome: 'limited', forge: 'GitHub', anonymous: token === undefined, until: 1_300_000 }
      expect(await forge.issues(app, all)).toEqual(expected)
      expect(await forge.issuesNumbered(app, [1])).toEqual({ outcome: 'found', issues: [], problem: expected })
      expect(double.requests).toHaveLength(2)
    },
  )

  test.each([
    ['a repository that nobody may see', { status: 404, body: { message: 'Not Found' } }, 'refused', 'not-found'],
    ['issues that are off', { status: 410, body: { message: 'Issues are disabled' } }, 'refused', 'not-found'],
    ['a token that was revoked', { status: 401, body: { message: 'Bad credentials' } }, 'refused', 'permission'],
    [
      'a token without the permission',
      { status: 403, body: { message: 'Resource not accessible' } },
      'refused',
      'permission',
    ],
    ['a wrong question', { status: 422, body: { message: 'Validation Failed' } }, 'refused', 'other'],
    ['another answer', { status: 200, body: [{ number: 'one' }] }, 'refused', 'other'],
    ['an outage', { status: 502, body: { message: 'Bad Gateway' } }, 'unreachable', undefined],
    ['a broken connection', 'lost', 'unreachable', undefined],
  ] as const)('from %s', async (_name, trouble, outcome, why) => {
    double.trouble = () => trouble
    expect(await find()).toMatchObject({ outcome, ...(why !== undefined && { why, anonymous: false }) })
  })

  test('if a later page fails: half of the issues are not all of them', async () => {
    for (let n = 1; n <= 150; n++) double.issue(n)
    double.trouble = (request) => (request.includes('page=2') ? { status: 502 } : undefined)
    expect(await find()).toMatchObject({ outcome: 'unreachable' })
  })

  test('after a cancellation', async () => {
    await expect(forgeWith('ghp_x').issues(app, all, { signal: AbortSignal.abort() })).rejects.toThrow(/abort/i)
  })
})

test('single issues are looked at by number; what is gone or has moved is missing', async () => {
  double.issue(1)
  double.issue(2, { state: 'closed' })
  double.issues.set('acme/app#3', { number: 77, title: 'moved', state: 'open' })
  const found = await forgeWith('ghp_x').issuesNumbered(app, [1, 2, 3, 4])
  expect(found.outcome === 'found' && found.issues.map(({ number, open }) => [number, open])).toEqual([
    [1, true],
    [2, false],
  ])
  double.trouble = (request) => (request.endsWith('/2') ? { status: 502 } : undefined)
  expect(await forgeWith('ghp_x').issuesNumbered(app, [1, 2, 1])).toMatchObject({
    issues: { length: 1 },
    problem: { outcome: 'unreachable' },
  })
})

describe('closing an issue', () => {
  const comment = { text: 'Landed as abc1234. cc @ann', id: 'item-7-landed' }
  const close = (number = 42) => forgeWith('ghp_x').closeIssue(app, number, comment)
  const issue = () => double.issues.get('acme/app#42')

  beforeEach(() => {
    double.issue(42)
    now = 0
  })

  const expectClosedOnce = (): void => {
    expect(issue()).toMatchObject({ state: 'closed', state_reason: 'completed' })
    const [said, ...more] = double.bodies('acme/app#42')
    expect(more).toEqual([])
    expect([said, said !== undefined && isOurs(said)]).toEqual([
      expect.stringContaining('Landed as abc1234. cc @\u200bann'),
      true,
    ])
  }

  test('says why, notifies nobody, and does it once', async () => {
    expect(await close()).toEqual({ outcome: 'closed' })
    expectClosedOnce()
    expect(await close()).toEqual({ outcome: 'closed-already' })
    expectClosedOnce()
  })

  test.each(['POST', 'PATCH'])('ends the same if the answer to the %s is lost', async (verb) => {
    double.trouble = (request) => (request.startsWith(verb) ? 'lost' : undefined)
    expect(await close()).toEqual({ outcome: 'closed' })
    expectClosedOnce()
  })

  test('ends the same if it stopped after the comment', async () => {
    double.trouble = (request) => (request.startsWith('PATCH') ? { status: 502 } : undefined)
    expect(await close()).toMatchObject({ outcome: 'unreachable' })
    expect(issue()).toMatchObject({ state: 'open' })
    double.trouble = undefined
    expect(await close()).toEqual({ outcome: 'closed' })
    expectClosedOnce()
  })

  test('knows its own comment among others', async () => {
    for (let n = 0; n < 130; n++) double.say('acme/app#42', {}, `comment ${n}`)
    await close()
    const own = double.bodies('acme/app#42').filter((body) => hasMarker(body, comment.id))
    expect(own).toHaveLength(1)
  })

  test('is refused for a pull request, and without permission or credentials', async () => {
    double.issue(43, { pull_request: {} })
    expect(await close(43)).toMatchObject({ outcome: 'refused', said: '#43 is a pull request' })
    expect(await close(44)).toMatchObject({ outcome: 'refused', why: 'not-found' })
    double.trouble = (request) => (request.startsWith('POST') ? { status: 403, body: { message: 'no' } } : undefined)
    expect(await close()).toMatchObject({ outcome: 'refused', why: 'permission' })
    expect(await forgeWith(undefined).closeIssue(app, 42, comment)).toEqual({ outcome: 'no-forge' })
    expect(issue()).toMatchObject({ state: 'open' })
  })
})

import { memoryForTest } from '../helpers/platform-memory.ts'
import { generateKeyPairSync } from 'node:crypto'
import { createRequire } from 'node:module'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { AppError } from '../../src/domain/errors.ts'
import { createSecrets } from '../../src/process/redaction/redact.ts'
import type { Platform, PlatformInbox } from '../../src/platforms/platform.ts'
import { inboxOf, type Received } from '../helpers/inbox.ts'
import {
  alice,
  commented,
  type GithubDouble,
  headersFor,
  type MadePlatform,
  makeGithub,
  post,
  SECRET,
  signed,
  startDouble,
  type Trouble,
} from './github-double.ts'

/** As the real one: the same delivery again is a duplicate. */
const makeInbox = (): PlatformInbox & { received: Received[] } => {
  const received: Received[] = []
  return {
    received,
    ...inboxOf(async (message) => {
      const first = received.findIndex(({ deliveryId }) => deliveryId === message.deliveryId)
      if (first !== -1) return { outcome: 'duplicate', id: `id-${first}` }
      received.push(message)
      return { outcome: 'accepted', id: `id-${received.length}` }
    }),
  }
}

let double: GithubDouble
beforeEach(async () => {
  double = await startDouble()
  double.permissions.set('alice', { id: 5, permission: 'write' })
})
afterEach(() => double.close())

const make = (settings: Parameters<typeof makeGithub>[0] = {}): Promise<MadePlatform> =>
  makeGithub({ token: 'ghp_test', bot: 'coppice', apiUrl: double.url, ...settings })

const started = async (
  settings: Parameters<typeof makeGithub>[0] = {},
): Promise<MadePlatform & { inbox: ReturnType<typeof makeInbox> }> => {
  const made = await make(settings)
  const inbox = makeInbox()
  await made.platform.start(inbox)
  return { ...made, inbox }
}

const refusal = async (attempt: Promise<unknown>): Promise<AppError> => {
  const error: unknown = await attempt.catch((thrown: unknown) => thrown)
  if (error instanceof AppError) return error
  throw new Error('it was not refused', { cause: error })
}

test('comments of one installation do not wait for those of another', async () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const expires_at = new Date(Date.now() + 3_600_000).toISOString()
  double.trouble = (request) => {
    const [, owner] = /\/repos\/(\w+)\/app\/installation$/.exec(request) ?? []
    if (owner !== undefined) return { status: 200, body: { id: owner === 'acme' ? 7 : 8 } }
    return request.endsWith('/access_tokens') ? { status: 201, body: { token: 'v1.x', expires_at } } : undefined
  }
  const pem = String(privateKey.export({ type: 'pkcs8', format: 'pem' }))
  // With GitHub's pace: a comment every three seconds.
  const app = { appId: '7', privateKey: pem, apiUrl: double.url, bot: 'coppice' }
  const { platform } = await makeGithub(app, { paced: true })
  const reply = (conversationId: string): Promise<void> =>
    platform.send({ id: `${conversationId}.0`, conversationId, role: 'agent', text: 'Done.', part: 1, parts: 1 })
  await reply('acme/app#1')
  // Closed before its turn comes.
  reply('acme/app#2').catch(() => undefined)
  await reply('other/app#1')
  expect(double.bodies('other/app#1')).toHaveLength(1)
  expect(double.bodies('acme/app#2')).toEqual([])
})

test('the tokens that an app gets while it runs are hidden in every form', async () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const installed = 'v1.a-token-of-the-installation'
  double.trouble = (request) => {
    if (request.endsWith('/installation')) return { status: 200, body: { id: 7 } }
    const expires_at = new Date(Date.now() + 3_600_000).toISOString()
    return request.endsWith('/access_tokens') ? { status: 201, body: { token: installed, expires_at } } : undefined
  }
  const app = {
    appId: '7',
    privateKey: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
    apiUrl: double.url,
  }
  const { platform, secrets } = await makeGithub({ ...app, bot: 'coppice' })
  const reply = { id: 'r.0', conversationId: 'acme/app#42', role: 'agent', text: 'Done.', part: 1, parts: 1 } as const
  await platform.send(reply)
  const used = [...double.authorizations].map((one) => one.replace(/^\w+ /, ''))
  // A JSON Web Token, or two where a second passed between the requests.
  const [signed, others] = [used.filter((one) => one.startsWith('eyJ')), used.filter((one) => !one.startsWith('eyJ'))]
  expect(signed.length).toBeGreaterThan(0)
  expect(others).toEqual([installed])
  const encoded = used.map((one) => Buffer.from(one).toString('hex'))
  const all = [...used, ...encoded]
  expect(secrets.redactKnown(all.join(' '))).toBe(all.map(() => '[hidden]').join(' '))
})

describe('it refuses to start', () => {
  test('without a webhook secret', async () => {
    const { createGithubPlatform } = await import('../../src/platforms/github/platform.ts')
    const parts = { log: silent, clock: Date.now, ids: () => 'id', secrets: createSecrets(), memory: memoryForTest() }
    const made = createGithubPlatform({ token: 'x', bot: 'coppice' }, parts)
    expect((await refusal(made)).remedy).toContain('GITHUB_WEBHOOK_SECRET')
  })
  test('without a token and without an app', async () => {
    expect((await refusal(makeGithub({ bot: 'coppice' }))).remedy).toContain('GITHUB_TOKEN')
  })
  test('with half an app', async () => {
    expect((await refusal(makeGithub({ appId: '7', bot: 'coppice' }))).code).toBe('config-invalid')
  })
  test('with a token that GitHub does not accept', async () => {
    double.trouble = () => ({ status: 401, body: { message: 'Bad credentials' } })
    const { platform } = await make()
    const error = await refusal(platform.start(makeInbox()))
    expect([error.code, error.message]).toEqual(['config-invalid', 'GitHub rejected the credentials'])
  })
  test('when neither the settings nor GitHub say by which name it is mentioned', async () => {
    double.trouble = () => ({ status: 500 })
    const { platform } = await makeGithub({ token: 'x', apiUrl: double.url })
    expect((await refusal(platform.start(makeInbox()))).remedy).toContain('GITHUB_BOT')
  })
})

const silent = { debug: nothing, info: nothing, warn: nothing, error: nothing, child: () => silent }
function nothing(): void {}

test('GitHub being away does not keep it from starting, and its standing says so', async () => {
  double.trouble = () => ({ status: 503 })
  const { platform, inbox } = await started({ allowedUsers: ['5'] })
  expect(platform.status?.()).toMatchObject({ state: 'disconnected' })
  expect(await post(platform, commented('@coppice go'))).toMatchObject({ status: 200, body: 'accepted' })
  expect(inbox.received).toHaveLength(1)
  double.trouble = undefined
  await platform.send({ id: 'r.0', conversationId: 'acme/app#42', role: 'agent', text: 'ok', part: 1, parts: 1 })
  expect(platform.status?.()).toMatchObject({ state: 'connected', lastMessageAt: expect.any(Number) as number })
})

test('without a name of its own it goes by that of its account', async () => {
  const { platform, inbox } = await started({ bot: undefined } as never)
  await post(platform, commented('@coppice-machine go'))
  expect(inbox.received.map(({ text }) => text)).toEqual(['go'])
})

describe('a delivery', () => {
  const body = JSON.stringify(commented('@coppice go').payload)
  const send = (platform: Platform, headers: Record<string, string>, bytes: string | Uint8Array = body) =>
    platform.webhook?.({ headers, body: typeof bytes === 'string' ? Buffer.from(bytes) : bytes })
  const right = headersFor(commented(''), body)
  const { 'x-hub-signature-256': signature = '', ...unsigned } = right

  test.each<[string, Record<string, string>, (string | Uint8Array)?]>([
    ['without a signature', unsigned],
    ['with an empty signature', { ...right, 'x-hub-signature-256': '' }],
    ['signed with another secret', { ...right, 'x-hub-signature-256': signed(body, 'other') }],
    ['with a truncated signature', { ...right, 'x-hub-signature-256': signature.slice(0, -1) }],
    ['with a signature that is too long', { ...right, 'x-hub-signature-256': `${signature}0` }],
    ['with the signature in capitals', { ...right, 'x-hub-signature-256': signature.toUpperCase() }],
    ['with the signature of SHA-1 only', { ...unsigned, 'x-hub-signature': 'sha1=abc' }],
    ['with a signature of another text', right, body.replace('go', 'no')],
    ['with a byte more', right, `${body} `],
    ['with a byte order mark that was not signed', right, `\ufeff${body}`],
    ['without a body', right, ''],
    ['that is no UTF-8', { ...right, 'x-hub-signature-256': signed(Buffer.from([0xff])) }, Buffer.from([0xff])],
  ])('%s is refused', async (_what, headers, bytes) => {
    const { platform, inbox } = await started()
    expect((await send(platform, headers, bytes))?.status).toBe(401)
    expect(inbox.received).toEqual([])
  })

  test.each<[string, Record<string, string>, string?]>([
    ['without an id', { ...right, 'x-github-delivery': '' }],
    ['with a strange id', { ...right, 'x-github-delivery': 'a\nb' }],
    ['that is no JSON', { ...right, 'x-hub-signature-256': signed('{') }, '{'],
    ['that is null', { ...right, 'x-hub-signature-256': signed('null') }, 'null'],
  ])('%s is not understood', async (_what, headers, bytes) => {
    const { platform, inbox } = await started()
    expect((await send(platform, headers, bytes))?.status).toBe(400)
    expect(inbox.received).toEqual([])
  })

  test('with other characters than ASCII is verified over its very bytes', async () => {
    const { platform, inbox } = await started()
    const { event, payload } = commented('@coppice grüße 日本 🎉')
    expect((await post(platform, { event, payload }))?.status).toBe(200)
    expect(inbox.received[0]?.text).toBe('grüße 日本 🎉')
  })

  test('as a form is read as well', async () => {
    const { platform, inbox } = await started()
    const form = new URLSearchParams({ payload: body }).toString()
    const headers = {
      ...right,
      'content-type': 'application/x-www-form-urlencoded',
      'x-hub-signature-256': signed(form),
    }
    expect((await send(platform, headers, form))?.body).toBe('accepted')
    expect(inbox.received).toHaveLength(1)
  })

  test('that comes again is a duplicate', async () => {
    const { platform, inbox } = await started()
    expect((await send(platform, right))?.body).toBe('accepted')
    expect((await send(platform, right))?.body).toBe('duplicate')
    expect(inbox.received).toHaveLength(1)
  })

  test('is not taken before the start and after the stop', async () => {
    const { platform } = await make()
    expect((await send(platform, right))?.status).toBe(503)
    const inbox = makeInbox()
    await platform.start(inbox)
    await platform.stop()
    expect((await send(platform, right))?.status).toBe(503)
    expect(inbox.received).toEqual([])
  })

  test('that cannot be made durable is not acknowledged', async () => {
    const { platform } = await make()
    await platform.start(inboxOf(() => Promise.reject(new Error('the disk is full'))))
    await expect(send(platform, right)).rejects.toThrow('the disk is full')
  })
})

describe('who may speak', () => {
  const outcome = async (user: object, settings = {}): Promise<[number | undefined, number]> => {
    const { platform, inbox } = await started(settings)
    const { status } = await post(platform, commented('@coppice go', { user }))
    return [status, inbox.received.length]
  }
  const stranger = { id: 66, login: 'mallory', type: 'User' }

  test.each(['write', 'admin'])('who has the permission %s', async (permission) => {
    double.permissions.set('alice', { id: 5, permission })
    expect(await outcome(alice)).toEqual([200, 1])
  })
  test('who maintains', async () => {
    double.permissions.set('alice', { id: 5, permission: 'write', role: 'maintain' })
    expect(await outcome(alice)).toEqual([200, 1])
  })
  test.each(['read', 'triage', 'none'])('not who has the permission %s', async (permission) => {
    double.permissions.set('mallory', { id: 66, permission })
    expect(await outcome(stranger)).toEqual([200, 0])
  })
  test('not who is unknown, who is logged and not answered', async () => {
    const { platform, inbox, logged } = await started()
    await post(platform, commented('@coppice go', { user: stranger }))
    expect(inbox.received).toEqual([])
    expect(logged.join('')).toMatch(/not an allowed user.*"userId":66/)
    expect(double.requests.filter((line) => line.startsWith('POST'))).toEqual([])
  })
  test('not who took over the name of somebody who may', async () => {
    double.permissions.set('mallory', { id: 5, permission: 'admin' })
    expect(await outcome(stranger)).toEqual([200, 0])
  })
  test('who is on the list by id, without asking', async () => {
    expect(await outcome(stranger, { allowedUsers: ['66'] })).toEqual([200, 1])
    expect(double.requests).toEqual(['GET /user'])
  })
  test('not who is on the list by name', async () => {
    expect(await outcome(stranger, { allowedUsers: ['mallory'] })).toEqual([200, 0])
  })
  test.each([
    ['an error', { status: 500 }],
    ['a limit', { status: 429, headers: { 'retry-after': '30' } }],
    ['a missing permission of our own', { status: 403, body: { message: 'Resource not accessible' } }],
  ])('nobody while GitHub answers with %s: the delivery is not acknowledged', async (_what, trouble) => {
    const { platform, inbox } = await started()
    double.trouble = () => trouble
    expect((await post(platform, commented('@coppice go'))).status).toBe(503)
    expect(inbox.received).toEqual([])
    double.trouble = undefined
    expect((await post(platform, commented('@coppice go'))).status).toBe(200)
  })
  test('GitHub is asked once per user and minute', async () => {
    const start = Date.now()
    let now = start
    const { platform } = await makeGithub({ token: 'x', bot: 'coppice', apiUrl: double.url }, {}, () => now)
    const inbox = makeInbox()
    await platform.start(inbox)
    const asked = (): number => double.requests.filter((line) => line.includes('/permission')).length
    await Promise.all([1, 2, 3].map((id) => post(platform, commented('@coppice go', { id }))))
    expect([inbox.received.length, asked()]).toEqual([3, 1])
    now = start + 61_000
    double.permissions.set('alice', { id: 5, permission: 'read' })
    await post(platform, commented('@coppice go'))
    expect([inbox.received.length, asked()]).toEqual([3, 2])
  })
  test('a closed issue needs nobody’s leave', async () => {
    const { platform, inbox } = await started()
    const { payload } = commented('')
    await post(platform, {
      event: 'issues',
      payload: { ...payload, comment: undefined, action: 'closed', sender: stranger },
    })
    expect(inbox.received).toMatchObject([{ kind: 'closed', conversationId: 'acme/app#42', text: '' }])
  })
})

describe('before a message is worked on', () => {
  const head = { ref: 'fix-login', sha: 'b'.repeat(40), repo: { full_name: 'acme/app' } }
  const pull = { id: 2, number: 42, title: 'Fix', body: 'Fixes #7', user: alice, head, base: { repo: head.repo } }
  const prepared = async (made: Awaited<ReturnType<typeof started>>, body = '@coppice go', pullRequest = true) => {
    await post(made.platform, commented(body, { pull: pullRequest, id: 150 }))
    const [message] = made.inbox.received
    if (message === undefined || made.platform.prepare === undefined) throw new Error('nothing to prepare')
    return made.platform.prepare(message)
  }

  test('a comment on a pull request gets its head and the issues that GitHub says it closes', async () => {
    double.pulls.set('acme/app#42', pull)
    double.closing.set(42, ['acme/app#8', 'other/app#9'])
    expect((await prepared(await started())).hints).toEqual({
      workflowType: 'pr',
      workflowId: '42',
      prBranch: 'fix-login',
      prSha: 'b'.repeat(40),
      isForkPR: false,
      linkedIssues: [8],
    })
  })
  test.each<[string, Parameters<typeof double.development.set>[1] | undefined, object]>([
    ['nothing is linked', undefined, {}],
    [
      'open pull requests of this repository close it, others are left out',
      {
        pulls: [
          { number: 8, head: 'Acme/app:fix-login' },
          { number: 9, head: 'mallory/app:evil' },
          { number: 10, head: 'acme/app:old', state: 'MERGED' },
          { number: 11 },
          { number: 12, head: 'acme/app:x', in: 'other/app' },
        ],
        branches: ['acme/app:42-login'],
      },
      { linkedPRs: [8], suggestedBranch: 'fix-login' },
    ],
    ['it has a branch', { branches: ['other/app:x', 'acme/app:42-login', ''] }, { suggestedBranch: '42-login' }],
    [
      'it has two of each',
      {
        pulls: [
          { number: 8, head: 'acme/app:a' },
          { number: 9, head: 'acme/app:b' },
        ],
        branches: ['acme/app:a', 'acme/app:b'],
      },
      { linkedPRs: [8, 9] },
    ],
  ])('a comment on an issue brings what GitHub links to it: %s', async (_what, linked, hints) => {
    if (linked !== undefined) double.development.set(42, linked)
    const known = { workflowType: 'issue', workflowId: '42' }
    expect((await prepared(await started(), '@coppice go', false)).hints).toEqual({ ...known, ...hints })
  })
  test.each([
    ['fails', { status: 500 }, 'disconnected'],
    ['answers with errors', { status: 200, body: { errors: [{ message: 'no', type: 'FORBIDDEN' }] } }, 'connected'],
    [
      'has another shape',
      { status: 200, body: { data: { repository: { issue: { linkedBranches: 7 } } } } },
      'connected',
    ],
    ['is lost', 'lost' as const, 'disconnected'],
  ])(
    'a new issue is worked on when GraphQL %s, and only silence counts as an outage',
    async (_what, trouble, state) => {
      const { platform, inbox } = await started()
      const payload = commented('').payload as { issue: object }
      const issue = { ...payload.issue, body: '@coppice go' }
      await post(platform, { event: 'issues', payload: { ...payload, comment: undefined, action: 'opened', issue } })
      double.trouble = () => trouble
      const [message] = inbox.received
      const known = { workflowType: 'issue', workflowId: '42' }
      expect((message && (await platform.prepare?.(message)))?.hints).toEqual(known)
      expect(platform.status?.().state).toBe(state)
    },
  )
  test.each([
    ['@coppice rebase this. Fixes #7, closed acme/app#9 and other/app#10', [8, 7, 9]],
    ['@coppice can you fix #7? It doesn’t close #9 `fixes #10`\n> fixes #11', [8]],
    ['@coppice fixes #42', [8]],
  ])('what a comment on a pull request states to fix counts like its description: %s', async (body, linkedIssues) => {
    double.pulls.set('acme/app#42', { ...pull, body: '' })
    double.closing.set(42, ['acme/app#8'])
    expect((await prepared(await started(), body)).hints).toMatchObject({ linkedIssues })
  })
  test('a fork is one', async () => {
    double.pulls.set('acme/app#42', { ...pull, head: { ...head, repo: { full_name: 'mallory/app' } } })
    expect((await prepared(await started())).hints).toMatchObject({ isForkPR: true })
  })
  test.each([
    ['fails', { status: 500 }],
    ['is not there', { status: 404 }],
    ['answers with errors', { status: 200, body: { errors: [{ message: 'no', type: 'FORBIDDEN' }] } }],
  ])('the text says what is closed when GraphQL %s', async (_what, trouble) => {
    double.pulls.set('acme/app#42', pull)
    const made = await started()
    double.trouble = (line) => (line.includes('graphql') ? trouble : undefined)
    expect((await prepared(made)).hints).toMatchObject({ linkedIssues: [7], prBranch: 'fix-login' })
  })
  test('at the pace that GitHub asks for it is the same', async () => {
    double.pulls.set('acme/app#42', pull)
    const settings = { token: 'x', bot: 'coppice', apiUrl: double.url, allowedUsers: ['5'] }
    const made = await makeGithub(settings, { paced: true })
    const { platform } = made
    const inbox = makeInbox()
    await platform.start(inbox)
    const troubles: Trouble[] = ['lost', { status: 429, headers: { 'retry-after': '3600' } }]
    double.trouble = (line) => (line.includes('graphql') ? troubles.pop() : undefined)
    for (let time = 0; time < 2; time += 1) {
      const again = { ...made, inbox: makeInbox() }
      await platform.start(again.inbox)
      expect((await prepared(again)).hints).toMatchObject({ linkedIssues: [7], prBranch: 'fix-login' })
    }
    expect(troubles).toEqual([])
  })
  test('the text says what is closed while GitHub has not read it yet', async () => {
    double.pulls.set('acme/app#42', pull)
    expect((await prepared(await started())).hints).toMatchObject({ linkedIssues: [7] })
  })
  test('nothing is run when the head of a pull request cannot be had', async () => {
    const error = await refusal(prepared(await started()))
    expect(error.code).toBe('remote-unreachable')
  })
  test('the newest comments before it are its context', async () => {
    for (let n = 1; n <= 30; n++) double.say('acme/app#42', { login: `user${n}` }, `words ${n} <!-- hidden -->`)
    double.say('acme/app#42', { login: 'alice' }, '@coppice go')
    const own = double.comments.get('acme/app#42')?.at(-1)
    if (own !== undefined) own.id = 150
    double.say('acme/app#42', { login: 'late' }, 'said afterwards').id = 151
    const { context = '' } = await prepared(await started(), '@coppice go', false)
    expect(context).toContain('> It says 500')
    expect(context).toMatch(/Comment by @user11, .*:\n> words 11\n[\s\S]*Comment by @user30, .*:\n> words 30$/)
    expect(context).not.toMatch(/words 10|hidden|afterwards|@coppice/)
  })
  test('of hundreds of comments the newest are found', async () => {
    for (let n = 1; n <= 201; n++) double.say('acme/app#42', {}, `words ${n}.`).id = n + 1_000
    const made = await started()
    await post(made.platform, { ...commented('@coppice go', { id: 5_000 }) })
    const [message] = made.inbox.received
    const { context = '' } = (message && (await made.platform.prepare?.(message))) ?? {}
    expect(context).toContain('words 201.')
    expect(context).toContain('words 182.')
    expect(context).not.toContain('words 181.')
  })
  test('it goes on without them when they cannot be read', async () => {
    const made = await started()
    double.trouble = (line) => (line.includes('/comments') ? { status: 404 } : undefined)
    expect((await prepared(made, '@coppice go', false)).context).toContain('> It says 500')
  })
})

type Example = { readonly name: string; readonly examples: readonly object[] }
const examples = createRequire(import.meta.url)('@octokit/webhooks-examples') as readonly Example[]

describe('every example of GitHub’s own', () => {
  const all = examples.flatMap(({ name, examples: payloads }) => payloads.map((payload) => ({ event: name, payload })))

  test('is handled or ignored, and none is an order', async () => {
    const { platform, inbox } = await started({ allowedUsers: ['*'] })
    const counts = { accepted: 0, ignored: 0 }
    for (const one of all) {
      const { status, body = '' } = await post(platform, one)
      expect([status, one.event]).toEqual([200, one.event])
      counts[body === 'accepted' ? 'accepted' : 'ignored'] += 1
    }
    expect(inbox.received.filter(({ kind }) => kind === 'message')).toEqual([])
    expect(inbox.received.filter(({ kind }) => kind === 'closed')).toHaveLength(counts.accepted)
    console.log(`${all.length} examples: ${counts.accepted} closed something, ${counts.ignored} ignored`)
  })

  test('with a wrong, missing or truncated signature is refused, and again is a duplicate', async () => {
    const { platform, inbox } = await started({ allowedUsers: ['*'] })
    const status = async (posted: (typeof all)[number], signature: string | undefined): Promise<number | undefined> => {
      const body = JSON.stringify(posted.payload)
      const { 'x-hub-signature-256': _right, ...headers } = headersFor(posted, body)
      const given = signature === undefined ? {} : { 'x-hub-signature-256': signature }
      return (await platform.webhook?.({ headers: { ...headers, ...given }, body: Buffer.from(body) }))?.status
    }
    for (const one of all) {
      const right = signed(JSON.stringify(one.payload))
      expect(await status(one, signed(JSON.stringify(one.payload), `${SECRET}!`))).toBe(401)
      expect(await status(one, right.slice(0, 40))).toBe(401)
      expect(await status(one, undefined)).toBe(401)
    }
    expect(inbox.received).toEqual([])
    for (const [n, one] of all.entries()) {
      const first = await post(platform, { ...one, id: `delivery-${n}` })
      const again = await post(platform, { ...one, id: `delivery-${n}` })
      expect(again.body).toBe(first.body === 'accepted' ? 'duplicate' : first.body)
    }
  })

  test('that speaks to the bot is an order where it is new, and only there', async () => {
    const { platform, inbox } = await started({ allowedUsers: ['*'], bot: 'coppice' })
    const orders: string[] = []
    for (const { event, payload } of all) {
      const before = inbox.received.length
      const calling = JSON.parse(
        JSON.stringify(payload, (key, value: unknown) =>
          key === 'body' && (typeof value === 'string' || value === null) ? '@coppice do it' : value,
        ),
      ) as { action?: string }
      expect((await post(platform, { event, payload: calling })).status).toBe(200)
      const added = inbox.received.slice(before).filter(({ kind }) => kind === 'message')
      orders.push(...added.map(() => `${event}.${calling.action ?? ''}`))
    }
    expect([...new Set(orders)].toSorted()).toEqual([
      'issue_comment.created',
      'issues.opened',
      'pull_request.opened',
      'pull_request_review.submitted',
      'pull_request_review_comment.created',
    ])
  })
})

test('a comment that two hooks tell of, or a recording under another id, is one message', async () => {
  const { platform, inbox } = await started()
  const comment = commented('@coppice fix it')
  expect(await post(platform, { ...comment, id: 'of-the-repository' })).toMatchObject({ body: 'accepted' })
  expect(await post(platform, { ...comment, id: 'of-the-organisation' })).toMatchObject({ body: 'duplicate' })
  expect(inbox.received).toHaveLength(1)
})

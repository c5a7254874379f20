import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AppError } from '../../src/domain/errors.ts'
import { defaultUploadLimits } from '../../src/server/uploads.ts'
import { makeServer, type ServerUnderTest, statusOf } from '../helpers/server.ts'

/* What may be sent, how much of it and how often. */

let under: ServerUnderTest
beforeAll(async () => {
  under = await makeServer()
})
afterAll(() => under[Symbol.asyncDispose]())

type Failure = { error: { code: string; message: string; reasons: unknown[]; remedies: string[] } }
const failure = async (answer: Response): Promise<Failure['error']> => ((await answer.json()) as Failure).error

describe('a malformed body gets 400 and a reason', () => {
  const good = { conversationId: 'c', message: 'hello' }
  const bad: [string, unknown, RegExp][] = [
    ['no JSON', '{"message":', /isn't valid JSON/],
    ['nothing', '', /isn't valid JSON|conversationId/],
    ['a list', [], /the body/],
    ['no object', '"text"', /the body/],
    ['null', 'null', /the body/],
    ['no message', { conversationId: 'c' }, /message/],
    ['an empty message', { ...good, message: '' }, /message/],
    ['a blank message', { ...good, message: ' \n ' }, /message: must not be blank/],
    ['a message of another type', { ...good, message: 5 }, /message/],
    ['a message with NUL', { ...good, message: 'a\0b' }, /NUL/],
    ['half a character', `{"conversationId":"c","message":"\\ud800"}`, /unpaired surrogate/],
    ['a message over 100 kB', { ...good, message: 'x'.repeat(100_001) }, /message/],
    ['a message over 100 kB in bytes only', { ...good, message: 'ü'.repeat(60_000) }, /100000 bytes/],
    ['a long conversation id', { ...good, conversationId: 'c'.repeat(501) }, /conversationId/],
    ['an id with a line break', { ...good, conversationId: 'a\nb' }, /conversationId: must not contain control/],
    ['an id with an escape', { ...good, conversationId: 'a\u001b[2Jb' }, /conversationId/],
    ['an unknown key', { ...good, platform: 'slack' }, /unknown key "platform"/],
    ['an unknown hint', { ...good, hints: { prHead: 'x' } }, /hints: unknown key "prHead"/],
    ['a proto key', `{"conversationId":"c","message":"m","__proto__":{"a":1}}`, /unknown key "__proto__"/],
    ['an unknown work', { ...good, hints: { workflowType: 'epic', workflowId: '1' } }, /hints\.workflowType/],
    ['an issue without a number', { ...good, hints: { workflowType: 'issue', workflowId: '../1' } }, /issue number/],
    ['a short sha', { ...good, hints: { prSha: 'abc' } }, /hints\.prSha: must be a full commit id/],
    ['links that are no numbers', { ...good, hints: { linkedIssues: ['1'] } }, /linkedIssues/],
    ['too many links', { ...good, hints: { linkedIssues: Array.from({ length: 101 }, () => 1) } }, /linkedIssues/],
    ['a delivery id over two lines', { ...good, deliveryId: 'a\nb' }, /deliveryId/],
  ]
  test.each(bad)('%s', async (_name, body, reason) => {
    const answer = await under.post('/test/message', body)
    const { code, message } = await failure(answer)
    expect({ status: answer.status, code, message }).toEqual({
      status: 400,
      code: 'invalid',
      message: expect.stringMatching(reason),
    })
    expect(under.accepted).toEqual([])
  })

  test('in the address as in the body', async () => {
    for (const path of [
      `/api/conversations/${'c'.repeat(501)}/messages`,
      '/api/conversations/a%0Ab/messages',
      '/api/conversations/c/messages?platform=../x',
      '/api/conversations/c/messages?limit=100000',
      '/api/conversations/c/messages?nothing=1',
      '/api/events?conversation=nocolon',
      '/api/environments?codebase=',
      '/api/environments?codebase=%2Fetc',
      '/api/environments?codebase=../project',
    ]) {
      expect([path, (await under.call(path)).status]).toEqual([path, 400])
    }
    expect((await under.call('/api/environments/x?force=yes', { method: 'DELETE' })).status).toBe(400)
    expect((await under.post('/api/conversations/c/messages?platform=test', { message: 'm' })).status).toBe(400)
    expect((await under.post('/api/conversations/c/messages', { message: 'm', agent: 'nobody' })).status).toBe(400)
    expect((await under.post('/api/codebases', { location: 'relative/path' })).status).toBe(400)
    expect(under.accepted).toEqual([])
  })

  test('a body that is not said to be JSON gets 415: a form of another page cannot say so', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded']) {
      const answer = await under.post('/test/message', good, { headers: { 'content-type': type } })
      expect(answer.status).toBe(415)
    }
  })
})

describe('too much', () => {
  const head = (more: string): string =>
    `POST /test/message HTTP/1.1\r\nhost: 127.0.0.1:${under.server.port}\r\nauthorization: Bearer ${under.token}\r\ncontent-type: application/json\r\n${more}\r\n`

  test('a body over 1 MB gets 413 by its length, before it is read', async () => {
    expect(statusOf(await under.raw(head('content-length: 1000001\r\n')))).toBe(413)
  })

  test('a chunked body over 1 MB gets 413 without a length', async () => {
    const chunk = `${(100_000).toString(16)}\r\n${'x'.repeat(100_000)}\r\n`
    const answer = await under.raw(`${head('transfer-encoding: chunked\r\n')}${chunk.repeat(11)}`)
    expect(statusOf(answer)).toBe(413)
    expect(answer).toContain('"code":"too-large"')
  })

  test('a chunked body that is small is read', async () => {
    const body = JSON.stringify({ conversationId: 'chunked', message: 'hello' })
    const chunked = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
    const answer = await under.raw(`${head('transfer-encoding: chunked\r\nconnection: close\r\n')}${chunked}`)
    expect(statusOf(answer)).toBe(202)
    expect(under.accepted.pop()?.conversationId).toBe('chunked')
  })

  test('a body with a length and chunks, which two servers would read differently, gets 400', async () => {
    const answer = await under.raw(`${head('content-length: 5\r\ntransfer-encoding: chunked\r\n')}0\r\n\r\n`)
    expect(statusOf(answer)).toBe(400)
  })

  test('a head without end gets 431, one that never ends is cut off', async () => {
    expect(statusOf(await under.raw(`GET /healthz HTTP/1.1\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`))).toBe(431)
    await using slow = await makeServer({ listen: { timeouts: { headersMs: 200, checkMs: 50 } } })
    expect(statusOf(await slow.raw('GET /healthz HTTP/1.1\r\nhost: x\r\n'))).toBe(408)
  })

  test('a body that never ends is cut off', async () => {
    await using slow = await makeServer({ deps: { limits: { uploads: { ...defaultUploadLimits, patienceMs: 200 } } } })
    const half = `POST /test/message HTTP/1.1\r\nhost: 127.0.0.1:${slow.server.port}\r\nauthorization: Bearer ${slow.token}\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{"a"`
    expect(statusOf(await slow.raw(half))).toBe(408)
    expect(slow.accepted).toEqual([])
  })
})

describe('too often', () => {
  test('without the token 429 and when to come again; with it the server still answers', async () => {
    let now = Date.now()
    await using strict = await makeServer({
      world: { context: { clock: () => now } },
      deps: { limits: { refused: { perSecond: 1, burst: 3 }, open: { perSecond: 1, burst: 2 } } },
    })
    const wrong = async (): Promise<Response> => strict.call('/api/status', { token: 'guess' })
    const statuses = [await wrong(), await wrong(), await wrong(), await wrong()].map(({ status }) => status)
    expect(statuses).toEqual([401, 401, 401, 429])
    const last = await wrong()
    expect(Number(last.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await strict.call('/api/status')).status).toBe(200)
    const page = async (path = '/'): Promise<number> => (await strict.call(path, { token: null })).status
    expect([await page(), await page(), await page()]).toEqual([200, 200, 429])
    expect(await page('/healthz'), 'whoever watches the server may share an address with a flood').toBe(200)
    now += 1_100
    expect((await wrong()).status).toBe(401)
    expect(await page()).toBe(200)
  })

  test('with the token only what the configuration says', async () => {
    await using strict = await makeServer({
      world: { context: { clock: () => 1 } },
      deps: { limits: { authenticated: { perSecond: 1, burst: 2 } } },
    })
    const statuses = []
    for (let i = 0; i < 3; i++) statuses.push((await strict.call('/api/openapi.json')).status)
    expect(statuses).toEqual([200, 200, 429])
  })

  test('a thousand messages in a row with the token are not too many', async () => {
    const { accepted } = under
    const lanes = Array.from({ length: 20 }, async (_, lane) => {
      for (let i = 0; i < 50; i++) {
        const answer = await under.post('/test/message', { conversationId: `many-${lane}`, message: `m${i}` })
        if (answer.status !== 202) throw new Error(`${answer.status}`)
        await answer.body?.cancel()
      }
    })
    await Promise.all(lanes)
    expect(accepted.length).toBe(1_000)
  })
})

describe('an error says what happened and nothing else', () => {
  const secret = 'sw0rdfish-secret-value'
  const throwing = async (thrown: unknown): Promise<ServerUnderTest> =>
    makeServer({
      secret,
      deps: {
        wake: () => {
          throw thrown
        },
      },
    })

  test.each([
    ['what nobody expected', new Error(`boom ${secret} at /home/ada/.coppice`)],
    ['no error at all', `text ${secret}`],
    [
      'a store that is away',
      new AppError('store-failed', `connect postgres://u:${secret}@db`, { cause: new Error('x') }),
    ],
  ])('%s is 500 without its words', async (_name, thrown) => {
    await using server = await throwing(thrown)
    const answer = await server.call('/api/wake', { method: 'POST' })
    const text = await answer.text()
    expect(answer.status).toBe(500)
    expect(text).not.toContain(secret)
    expect(text).not.toMatch(/\bat .*\.ts|node_modules|boom|\/home\/ada/)
    expect(JSON.parse(text)).toEqual({
      error: { code: expect.any(String), message: expect.any(String), reasons: [], remedies: [expect.any(String)] },
    })
  })

  test('a fault of ours keeps its sentence and loses the secret', async () => {
    const remedy = `use ${secret} again`
    await using server = await throwing(new AppError('path-taken', `it says ${secret}`, { remedy }))
    const answer = await server.call('/api/wake', { method: 'POST' })
    expect(answer.status).toBe(409)
    expect(await failure(answer)).toEqual({
      code: 'path-taken',
      message: 'it says [hidden]',
      reasons: [],
      remedies: ['use [hidden] again'],
    })
  })

  test('bytes that are no HTTP get 400 and the server lives on', async () => {
    expect(statusOf(await under.raw('\u0016\u0003\u0001 garbage\r\n\r\n'))).toBe(400)
    const socket = connect(under.server.port, '127.0.0.1')
    await new Promise((resolve) => socket.once('connect', resolve))
    socket.destroy()
    expect((await under.call('/healthz', { token: null })).status).toBe(200)
  })
})

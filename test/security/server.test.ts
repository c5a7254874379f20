import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeServer, rawRequest, type ServerUnderTest, statusOf } from '../helpers/server.ts'

/*
 * Who may ask at all. The routes are walked, not listed: one that is added later is tried without anybody having to
 * think of it.
 */

let under: ServerUnderTest
beforeAll(async () => {
  // The matrices below are refused some hundreds of times in a second, which is what the limit is there for.
  under = await makeServer({ deps: { limits: { refused: { perSecond: 10_000, burst: 10_000 } } } })
})
afterAll(() => under[Symbol.asyncDispose]())

type Route = { readonly method: string; readonly path: string; readonly template: string }

const routes = (): Route[] => {
  const all = under.server.app.routes
    .filter(({ method }) => method !== 'ALL')
    .map(({ method, path }) => ({ method, template: path, path: path.replaceAll(/:[A-Za-z]+/g, 'some-id') }))
  return [...new Map(all.map((route) => [`${route.method} ${route.template}`, route])).values()]
}

const isOpen = ({ method, path }: Route): boolean => method === 'GET' && (path === '/' || path === '/healthz')
const changing = (): Route[] => routes().filter(({ method }) => method !== 'GET')

const head = ({ method, path }: Route, headers: Record<string, string>): string =>
  [
    `${method} ${path} HTTP/1.1`,
    ...Object.entries({ connection: 'close', ...(method === 'POST' && { 'content-length': '0' }), ...headers }).map(
      ([name, value]) => `${name}: ${value}`,
    ),
    '\r\n',
  ].join('\r\n')

const send = (route: Route, headers: Record<string, string>): Promise<string> =>
  rawRequest(under.server.port, head(route, { host: `127.0.0.1:${under.server.port}`, ...headers }))

const bearer = () => ({ authorization: `Bearer ${under.token}` })

describe('the token', () => {
  test('there are routes to try', () => {
    expect(routes().length).toBeGreaterThan(18)
    expect(changing().length).toBeGreaterThan(8)
  })

  test('every route but the page and the health needs it', async () => {
    for (const route of routes().filter((one) => !isOpen(one))) {
      for (const headers of [
        {},
        { authorization: 'Bearer ' },
        { authorization: `Bearer ${'0'.repeat(64)}` },
        { authorization: `Bearer ${under.token.slice(0, -1)}` },
        { authorization: `Bearer ${under.token}0` },
        { authorization: `Basic ${under.token}` },
        { authorization: under.token },
        { cookie: `coppice-${under.server.port}=${under.token}` },
        { cookie: `coppice-${under.server.port}=${'0'.repeat(32)}.${'0'.repeat(64)}` },
      ]) {
        const name = `${route.method} ${route.template} ${JSON.stringify(headers)}`
        expect([name, statusOf(await send(route, headers))]).toEqual([name, 401])
      }
    }
  })

  test('a path that does not exist says 401 to who has no token and 404 to who has it', async () => {
    expect((await under.call('/api/nothing', { token: null })).status).toBe(401)
    const answer = await under.call('/api/nothing')
    expect(answer.status).toBe(404)
    expect(await answer.json()).toMatchObject({ error: { code: 'not-found' } })
  })

  test('who has none is told how it is sent, and the redaction leaves that readable', async () => {
    const { error } = (await (await under.call('/api/status', { token: null })).json()) as {
      error: { remedies: string[] }
    }
    expect(error.remedies).toEqual([
      'send the header `Authorization` with `Bearer <token>`; the token is in the file `token` in the home directory',
    ])
  })

  test('it is not taken from the address, where it would be logged', async () => {
    expect((await under.call(`/api/status?token=${under.token}`, { token: null })).status).toBe(401)
  })

  test('it is exchanged for a cookie that scripts cannot read and other sites do not send', async () => {
    const answer = await under.call('/api/session', { method: 'POST' })
    expect(answer.status).toBe(204)
    const cookie = answer.headers.get('set-cookie') ?? ''
    expect(cookie).toMatch(/; HttpOnly/)
    expect(cookie).toMatch(/; SameSite=Strict/)
    expect(cookie).toMatch(/; Path=\//)
    expect(cookie).toMatch(/; Max-Age=\d+/)
    expect(cookie).not.toContain(under.token)
    const headers = { cookie: cookie.split(';')[0] ?? '' }
    expect((await under.call('/api/status', { token: null, headers })).status).toBe(200)
    // A cookie gets no further cookie, and a wrong token beside it is wrong.
    const own = { ...headers, origin: under.server.url }
    expect((await under.call('/api/session', { method: 'POST', token: null, headers: own })).status).toBe(401)
    expect((await under.call('/api/status', { token: 'wrong', headers })).status).toBe(401)
  })

  test('a cookie ends, and one that was changed is refused', async () => {
    let now = Date.now()
    await using other = await makeServer({ world: { context: { clock: () => now } } })
    const answer = await other.call('/api/session', { method: 'POST' })
    const cookie = (answer.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
    const ask = async (value: string): Promise<number> =>
      (await other.call('/api/openapi.json', { token: null, headers: { cookie: value } })).status
    expect(await ask(cookie)).toBe(200)
    const [name = '', id = '', signed = ''] = cookie.split(/[=.]/)
    const other16 = (digit: string): string => (digit === '0' ? '1' : '0')
    for (const changed of [
      `${other16(id.charAt(0))}${id.slice(1)}.${signed}`,
      `${id}.${other16(signed.charAt(0))}${signed.slice(1)}`,
      `${id}.${'0'.repeat(64)}`,
      id,
    ]) {
      expect(await ask(`${name}=${changed}`)).toBe(401)
    }
    now += 8 * 24 * 60 * 60 * 1000
    expect(await ask(cookie)).toBe(401)
  })
})

describe('Host', () => {
  const refusedHosts = (port: number): string[] => [
    'evil.example',
    `evil.example:${port}`,
    `localhost.evil.example:${port}`,
    `127.0.0.1.evil.example:${port}`,
    `127.evil.example:${port}`,
    `evil-localhost:${port}`,
    'localhost',
    `localhost:${port + 1}`,
    '127.0.0.1:80',
    `0.0.0.0:${port}`,
    `[::]:${port}`,
    `192.168.1.1:${port}`,
    `user@localhost:${port}`,
    `localhost:${port}:${port}`,
  ]

  test('a foreign one gets 403 on every route, with the token too', async () => {
    const [first] = routes()
    for (const route of routes()) {
      const host = `evil.example:${under.server.port}`
      expect([route.template, statusOf(await send(route, { ...bearer(), host }))]).toEqual([route.template, 403])
    }
    for (const host of refusedHosts(under.server.port)) {
      // Some of them are no host at all, which is said before anybody compares.
      const status = statusOf(await send(first as Route, { ...bearer(), host }))
      expect([host, status === 400 ? 403 : status]).toEqual([host, 403])
    }
  })

  test('the names of the loopback with our port are answered', async () => {
    const { port } = under.server
    const status = { method: 'GET', path: '/api/status', template: '/api/status' }
    for (const host of [
      `127.0.0.1:${port}`,
      `localhost:${port}`,
      `LocalHost:${port}`,
      `[::1]:${port}`,
      `127.0.0.2:${port}`,
    ]) {
      expect([host, statusOf(await send(status, { ...bearer(), host }))]).toEqual([host, 200])
    }
  })

  test('without one there is no answer', async () => {
    expect(statusOf(await under.raw('GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n'))).toBe(400)
    expect(statusOf(await under.raw('GET /healthz HTTP/1.0\r\n\r\n'))).toBe(400)
  })

  test('an absolute address in the request line does not stand in for it', async () => {
    const { port } = under.server
    const path = `http://127.0.0.1:${port}/api/status`
    const route = { method: 'GET', path, template: path }
    expect(statusOf(await send(route, { ...bearer(), host: 'evil.example' }))).toBe(403)
  })

  test('a configured name is answered, with TLS in front of it too', async () => {
    await using other = await makeServer({ deps: { allowedHosts: ['coppice.example', 'exact.example:8443'] } })
    const ask = async (host: string, origin?: string): Promise<number> =>
      statusOf(
        await rawRequest(
          other.server.port,
          `POST /api/wake HTTP/1.1\r\nhost: ${host}\r\n${origin === undefined ? '' : `origin: ${origin}\r\n`}authorization: Bearer ${other.token}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`,
        ),
      )
    expect(await ask('coppice.example')).toBe(204)
    expect(await ask('coppice.example', 'https://coppice.example')).toBe(204)
    expect(await ask('coppice.example', 'https://exact.example:8443')).toBe(403)
    expect(await ask('exact.example:8443')).toBe(204)
    expect(await ask('exact.example:1')).toBe(403)
  })
})

describe('Origin', () => {
  const foreign = (port: number): Record<string, string>[] => [
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: '' },
    { origin: `http://evil.example:${port}` },
    { origin: `http://127.0.0.1:${port + 1}` },
    { origin: `http://localhost:${port}` },
    { origin: `https://127.0.0.1:${port}` },
    { origin: `http://127.0.0.1:${port}.evil.example` },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ]

  test('a foreign one gets 403 on everything that changes state, with the token too', async () => {
    for (const route of changing()) {
      for (const headers of foreign(under.server.port)) {
        const name = `${route.method} ${route.template} ${JSON.stringify(headers)}`
        expect([name, statusOf(await send(route, { ...bearer(), ...headers }))]).toEqual([name, 403])
      }
    }
    expect(under.accepted).toEqual([])
    expect(under.woken.count).toBe(0)
  })

  test('our own one and none are let through', async () => {
    const wake = { method: 'POST', path: '/api/wake', template: '/api/wake' }
    const origin = `http://127.0.0.1:${under.server.port}`
    expect(statusOf(await send(wake, { ...bearer(), origin, 'sec-fetch-site': 'same-origin' }))).toBe(204)
    expect(statusOf(await send(wake, bearer()))).toBe(204)
  })

  test('no other page may read an answer', async () => {
    const answer = await under.call('/api/status', { headers: { origin: 'https://evil.example' } })
    expect(answer.headers.get('access-control-allow-origin')).toBeNull()
    expect(answer.headers.get('cross-origin-resource-policy')).toBe('same-origin')
  })
})

describe('every answer', () => {
  test('carries the headers that keep a browser from making anything of it', async () => {
    const answers = [
      await under.call('/api/status'),
      await under.call('/api/status', { token: null }),
      await under.call('/api/nothing'),
      await under.call('/', { token: null }),
      await under.call('/healthz', { token: null }),
      await under.post('/test/message', '{'),
      await under.call('/api/wake', { method: 'POST' }),
    ]
    for (const { headers, url } of answers) {
      expect({ url, ...Object.fromEntries(headers) }).toMatchObject({
        url,
        'content-security-policy': expect.stringMatching(/default-src 'none'.*frame-ancestors 'none'/),
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-store',
      })
    }
    const page = await under.call('/', { token: null })
    expect(page.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-[^,]*$/)
  })

  test('is listed in the OpenAPI document, route by route', async () => {
    const document = (await (await under.call('/api/openapi.json')).json()) as {
      openapi: string
      paths: Record<string, Record<string, { responses: object }>>
    }
    expect(document.openapi).toMatch(/^3\.1/)
    const listed = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`),
    )
    expect(listed.sort()).toEqual(
      routes()
        .map(({ method, template }) => `${method} ${template}`)
        .sort(),
    )
  })
})

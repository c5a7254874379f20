import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createSessions } from '../../src/server/sessions.ts'
import { makeServer, type ServerUnderTest } from '../helpers/server.ts'

/* What a cookie of the page is worth, and until when. */

let now = Date.now()
let under: ServerUnderTest
beforeAll(async () => {
  under = await makeServer({ deps: { limits: { heartbeatMs: 50 } }, world: { context: { clock: () => now } } })
})
afterAll(() => under[Symbol.asyncDispose]())

const signIn = async (): Promise<string> => {
  const answer = await under.call('/api/session', { method: 'POST' })
  return (answer.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
}
const ask = (cookie: string, path = '/api/status', init: RequestInit = {}): Promise<Response> =>
  under.call(path, { ...init, token: null, headers: { cookie, ...(init.headers as Record<string, string>) } })
const statusOf = async (cookie: string): Promise<number> => (await ask(cookie)).status
const own = (): Record<string, string> => ({ origin: under.server.url })

/** Everything that an event stream says until it ends. */
const untilItEnds = async (answer: Response): Promise<string> => answer.text()

describe('a session', () => {
  test('is over when it is ended: for every copy of its cookie and for the streams it has opened', async () => {
    const [cookie, other] = [await signIn(), await signIn()]
    const streams = [await ask(cookie, '/api/events'), await ask(cookie, '/api/events')]
    const others = await ask(other, '/api/events')
    expect((await ask(cookie, '/api/session', { method: 'DELETE', headers: own() })).status).toBe(204)
    for (const stream of streams) expect(await untilItEnds(stream)).toContain(': watching')
    expect([await statusOf(cookie), await statusOf(other)]).toEqual([401, 200])
    // Once more, and with the token beside it.
    expect((await ask(cookie, '/api/session', { method: 'DELETE', headers: own() })).status).toBe(401)
    const withToken = await under.call('/api/session', { method: 'DELETE', headers: { cookie: other } })
    expect([withToken.status, await statusOf(other)]).toEqual([204, 401])
    expect(await untilItEnds(others)).toContain(': watching')
  })

  test('is over with all others when that is asked for', async () => {
    const cookies = [await signIn(), await signIn(), await signIn()]
    const stream = await ask(cookies[0] ?? '', '/api/events')
    expect((await under.call('/api/session?all=true', { method: 'DELETE' })).status).toBe(204)
    expect(await Promise.all(cookies.map(statusOf))).toEqual([401, 401, 401])
    await untilItEnds(stream)
  })

  test('that expires ends its streams too; one with the token goes on', async () => {
    const stream = await ask(await signIn(), '/api/events')
    const withToken = await under.call('/api/events')
    now += 8 * 24 * 60 * 60 * 1000
    await untilItEnds(stream)
    under.changes.emit({ type: 'codebase', id: 'c', name: 'still-seen' })
    const reader = (withToken.body as ReadableStream<Uint8Array>).getReader()
    let seen = ''
    while (!seen.includes('still-seen')) seen += new TextDecoder().decode((await reader.read()).value)
    await reader.cancel()
  })

  test('outlives a restart, and not a new token; there are never more than a thousand', async () => {
    const store = under.world.context.store.pageSessions
    const clock = (): number => now
    const before = createSessions(store, 'a'.repeat(64), clock)
    const { cookie } = await before.begin()
    expect(await createSessions(store, 'a'.repeat(64), clock).find(cookie)).toBe(cookie.split('.')[0])
    expect(await createSessions(store, 'b'.repeat(64), clock).find(cookie)).toBeUndefined()
    for (let n = 0; n < 1_000; n++) {
      now += 1
      await before.begin()
    }
    expect(await before.find(cookie), 'the oldest').toBeUndefined()
  })
})

describe('a request with the cookie', () => {
  test('that changes anything needs our own Origin; the token needs none', async () => {
    const cookie = await signIn()
    const routes = under.server.app.routes.filter(
      ({ method, path }) => !['ALL', 'GET'].includes(method) && path !== '/',
    )
    expect(routes.length).toBeGreaterThan(8)
    for (const { method, path } of routes.filter(({ path: template }) => !template.startsWith('/webhooks'))) {
      const answer = await ask(cookie, path.replaceAll(/:[A-Za-z]+/g, 'some-id'), { method })
      expect([method, path, answer.status]).toEqual([method, path, 403])
    }
    expect(under.woken.count).toBe(0)
    const wake = async (headers: Record<string, string>): Promise<number> =>
      (await ask(cookie, '/api/wake', { method: 'POST', headers })).status
    expect(await wake({ 'sec-fetch-site': 'same-origin' }), 'what could be said without a page').toBe(403)
    expect(await wake({ origin: 'null' })).toBe(403)
    expect(await wake(own())).toBe(204)
    expect((await under.call('/api/wake', { method: 'POST' })).status).toBe(204)
  })

  test('that only looks may not come from another page', async () => {
    const cookie = await signIn()
    const look = async (headers: Record<string, string>): Promise<number> =>
      (await ask(cookie, '/api/status', { headers })).status
    expect(await look({})).toBe(200)
    expect(await look({ 'sec-fetch-site': 'none' })).toBe(200)
    expect(await look({ 'sec-fetch-site': 'same-site' })).toBe(403)
    expect(await look({ origin: 'https://evil.example' })).toBe(403)
  })
})

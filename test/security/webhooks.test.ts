import { describe, expect, test } from 'vitest'
import type { Platform, WebhookRequest } from '../../src/platforms/platform.ts'
import { makeServer } from '../helpers/server.ts'

/** A platform that accepts what carries the right word, and remembers the bytes it was given. */
const signedPlatform = () => {
  const got: WebhookRequest[] = []
  const platform: Platform = {
    platform: 'github',
    limit: undefined,
    start: async () => undefined,
    stop: async () => undefined,
    send: async () => undefined,
    webhook: async (request) => {
      if (request.headers['x-signature'] !== 'right') return { status: 401, body: 'the signature is wrong' }
      got.push(request)
      return { status: 202, body: 'taken' }
    },
  }
  return { got, remotes: new Map([['github', platform]]) }
}

const signed = { 'x-signature': 'right' }

describe('a webhook', () => {
  test('needs no token, comes under any name, and is handed on byte by byte', async () => {
    const { got, remotes } = signedPlatform()
    await using under = await makeServer({ deps: { remotes } })
    const body = Buffer.from([0x7b, 0xff, 0x00, 0x0a, 0x7d])
    const response = await under.call('/webhooks/github', { method: 'POST', token: null, body, headers: signed })
    expect([response.status, await response.text()]).toEqual([202, 'taken'])
    expect(Buffer.from(got[0]?.body ?? []).equals(body)).toBe(true)
    const tunnelled = await under.raw(
      'POST /webhooks/github HTTP/1.1\r\nHost: tunnel.example.com\r\nX-Signature: right\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}',
    )
    expect(tunnelled).toMatch(/^HTTP\/1\.1 202 /)
  })

  test('is judged by its platform, and what that refuses is refused', async () => {
    const { got, remotes } = signedPlatform()
    await using under = await makeServer({ deps: { remotes } })
    for (const headers of [{}, { 'x-signature': 'wrong' }]) {
      const response = await under.call('/webhooks/github', { method: 'POST', token: null, body: '{}', headers })
      expect(response.status).toBe(401)
    }
    // The token of the API is no signature.
    expect((await under.call('/webhooks/github', { method: 'POST', body: '{}' })).status).toBe(401)
    expect(got).toEqual([])
  })

  test.each(['/webhooks/nobody', '/webhooks/web', '/webhooks/', '/webhooks/github/more'])(
    '%s is nothing',
    async (path) => {
      const { remotes } = signedPlatform()
      await using under = await makeServer({ deps: { remotes } })
      const response = await under.call(path, { method: 'POST', token: null, body: '{}', headers: signed })
      expect([401, 404]).toContain(response.status)
    },
  )

  test('cannot be sent by a page of another origin, and not be asked for', async () => {
    const { got, remotes } = signedPlatform()
    await using under = await makeServer({ deps: { remotes } })
    const headers = { ...signed, origin: 'https://evil.example.com' }
    const response = await under.call('/webhooks/github', { method: 'POST', token: null, body: '{}', headers })
    expect(response.status).toBe(403)
    expect([401, 404]).toContain((await under.call('/webhooks/github', { token: null })).status)
    expect(got).toEqual([])
  })

  test('may be larger than other bodies, and is refused beyond what a service sends', async () => {
    const { got, remotes } = signedPlatform()
    await using under = await makeServer({ deps: { remotes } })
    const post = (bytes: number): Promise<Response> =>
      under.call('/webhooks/github', { method: 'POST', token: null, body: Buffer.alloc(bytes, 32), headers: signed })
    const many = await Promise.all(Array.from({ length: 8 }, () => post(2_000_000)))
    expect(many.map(({ status }) => status)).toEqual(Array(8).fill(202))
    expect(got).toHaveLength(8)
    expect((await post(25_000_001)).status).toBe(413)
  })

  test('is refused while the server is not ready, so that the service tries again', async () => {
    const { got, remotes } = signedPlatform()
    await using under = await makeServer({ deps: { remotes, ready: () => false } })
    const response = await under.call('/webhooks/github', { method: 'POST', token: null, body: '{}', headers: signed })
    expect(response.status).toBe(503)
    expect(got).toEqual([])
  })
})

import { connect, type Socket } from 'node:net'
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { Platform } from '../../src/platforms/platform.ts'
import { maxUnanswered } from '../../src/server/connections.ts'
import { defaultUploadLimits, type UploadLimits } from '../../src/server/uploads.ts'
import { makeServer, type ServerTestOptions, type ServerUnderTest, statusOf } from '../helpers/server.ts'

/* Clients that send or read slowly, or do nothing at all. None of them may keep the others from being answered. */

const webhook = (answer: NonNullable<Platform['webhook']>): Map<string, Platform> => {
  const nothing = async (): Promise<void> => undefined
  const platform = {
    platform: 'github',
    limit: undefined,
    start: nothing,
    stop: nothing,
    send: nothing,
    webhook: answer,
  }
  return new Map([['github', platform]])
}

/** A platform whose webhook answers with how many bytes it was given. */
const counting = (): Map<string, Platform> => webhook(async ({ body }) => ({ status: 202, body: String(body.length) }))

const serverWith = (
  uploads: Partial<UploadLimits> = {},
  listen: ServerTestOptions['listen'] = {},
): Promise<ServerUnderTest> =>
  makeServer({
    deps: { remotes: counting(), limits: { uploads: { ...defaultUploadLimits, ...uploads } } },
    listen,
  })

type Client = {
  readonly socket: Socket
  /** All that was answered when the connection has ended. */
  readonly ended: Promise<string>
  /** Settles once this much has been handed to the kernel. */
  readonly send: (bytes: string | Buffer) => Promise<void>
}

const client = ({ server }: ServerUnderTest, localAddress = '127.0.0.1'): Client => {
  const socket = connect({ port: server.port, host: '127.0.0.1', localAddress })
  let answer = ''
  socket.on('data', (chunk) => {
    answer += chunk.toString('latin1')
  })
  // Whoever is cut off while sending sees a reset.
  socket.on('error', () => undefined)
  return {
    socket,
    ended: new Promise((resolve) => socket.once('close', () => resolve(answer))),
    send: (bytes) => new Promise((resolve) => socket.write(bytes, () => resolve())),
  }
}

const head = (more: string): string => `POST /webhooks/github HTTP/1.1\r\nhost: x\r\n${more}\r\n`
const announced = (bytes: number): string => head(`content-length: ${bytes}\r\n`)
const chunked = head('transfer-encoding: chunked\r\n')
const chunk = (bytes: number): string => `${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n`

const healthRequest = ({ server }: ServerUnderTest): string =>
  `GET /healthz HTTP/1.1\r\nhost: 127.0.0.1:${server.port}\r\nconnection: close\r\n\r\n`

/** What others see meanwhile: the server is well, and a small delivery of unknown length is taken. */
const othersAreAnswered = async (server: ServerUnderTest): Promise<void> => {
  expect(statusOf(await server.raw(healthRequest(server)))).toBe(200)
  const small = `${head('transfer-encoding: chunked\r\nconnection: close\r\n')}${chunk(100)}0\r\n\r\n`
  expect(statusOf(await server.raw(small))).toBe(202)
}

describe('a body that comes slowly', () => {
  test('does not keep anybody waiting, however large it calls itself', async () => {
    await using server = await serverWith()
    const slow = Array.from({ length: 40 }, () => client(server))
    for (const [n, { send }] of slow.entries()) await send(n % 2 === 0 ? `${announced(20_000_000)}0123456789` : chunked)
    await othersAreAnswered(server)
    for (const { socket } of slow) socket.destroy()
  })

  const standstill: [string, string][] = [
    ['ten bytes of 20 MB', `${announced(20_000_000)}0123456789`],
    ['one byte of ten', `${announced(10)}0`],
    ['nothing of ten', announced(10)],
    ['chunks without an end', `${chunked}${chunk(10)}`],
    ['half a chunk', `${chunked}ff\r\nabc`],
    ['a megabyte at once, and then no more', `${announced(2_000_000)}${'x'.repeat(1_000_000)}`],
  ]
  test('is cut off with 408 when it stands still, with the token too', async () => {
    await using server = await serverWith({ patienceMs: 250 })
    const auth = `host: 127.0.0.1:${server.server.port}\r\nauthorization: Bearer ${server.token}\r\n`
    const withToken = `POST /api/wake HTTP/1.1\r\n${auth}content-length: 10\r\n\r\n{`
    const all = [...standstill, ['one byte of ten, with the token', withToken]]
    const answers = await Promise.all(
      all.map(async ([name = '', text = '']) => {
        const { send, ended } = client(server)
        await send(text)
        return [name, await ended] as const
      }),
    )
    for (const [name, answer] of answers) {
      expect.soft(statusOf(answer), name).toBe(408)
      expect.soft(answer.toLowerCase(), name).toContain('connection: close')
    }
    expect(server.woken.count).toBe(0)
  })

  test('is cut off when it only drips, and taken when it keeps up a modest rate', async () => {
    await using server = await serverWith({ patienceMs: 300, bytesPerSecond: 20_000 })
    const pace = async (bytes: number, times: number): Promise<number> => {
      const { send, socket, ended } = client(server)
      await send(head(`content-length: ${bytes * times}\r\nconnection: close\r\n`))
      for (let n = 0; n < times && !socket.destroyed; n++) {
        await send(Buffer.alloc(bytes))
        await delay(20)
      }
      return statusOf(await ended)
    }
    // Several times the patience each.
    expect(await Promise.all([pace(1, 100), pace(10_000, 100)])).toEqual([408, 202])
  })

  test('is not cut off for a pause of the server itself', async () => {
    await using server = await serverWith({ patienceMs: 300, bytesPerSecond: 20_000 })
    const { send, socket, ended } = client(server)
    await send(`${head('content-length: 200000\r\nconnection: close\r\n')}${'x'.repeat(100_000)}`)
    await othersAreAnswered(server)
    // Waits in the kernel for longer than the patience.
    socket.write('x'.repeat(100_000))
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 700)
    expect(statusOf(await ended)).toBe(202)
  })

  test('behind a request that needs none ends the connection', async () => {
    await using server = await serverWith()
    const { send, ended } = client(server)
    await send(`GET /healthz HTTP/1.1\r\nhost: 127.0.0.1:${server.server.port}\r\ncontent-length: 1000\r\n\r\n{`)
    expect(statusOf(await ended)).toBe(200)
  })
})

describe('memory for bodies', () => {
  const limits = { memoryBytes: 300_000, smallBytes: 10_000 }

  test('is taken by what has arrived: when it is full the slowest large body goes, and small ones are taken', async () => {
    await using server = await serverWith(limits)
    // Three that have filled it and stand still.
    const idle = Array.from({ length: 3 }, () => client(server))
    for (const { send } of idle) await send(`${announced(20_000_000)}${'x'.repeat(95_000)}`)
    await othersAreAnswered(server)
    const large = (bytes: number): Promise<Response> =>
      server.call('/webhooks/github', { method: 'POST', token: null, body: Buffer.alloc(bytes) })
    expect((await large(250_000)).status).toBe(202)
    const cut = await Promise.all(idle.map(({ ended }) => ended))
    expect(cut.map(statusOf)).toEqual([503, 503, 503])
    expect((await large(300_001)).status, 'larger than all of it').toBe(503)
  })

  test('is not taken from a small body, nor from a client that holds less than another', async () => {
    await using server = await serverWith(limits)
    const early = (bytes: number): string => head(`content-length: ${bytes + 1}\r\nconnection: close\r\n`)
    const small = client(server)
    await small.send(`${early(10)}${'x'.repeat(10)}`)
    const light = client(server, '127.0.0.2')
    await light.send(`${early(50_000)}${'x'.repeat(50_000)}`)
    const heavy = [client(server), client(server)]
    for (const { send } of heavy) await send(`${announced(20_000_000)}${'x'.repeat(140_000)}`)
    expect(statusOf(await Promise.race(heavy.map(({ ended }) => ended)))).toBe(503)
    await Promise.all([small.send('x'), light.send('x')])
    expect([statusOf(await small.ended), statusOf(await light.ended)]).toEqual([202, 202])
    for (const { socket } of heavy) socket.destroy()
  })

  test('a body that just fits, is small or large gets through, with a length and in chunks', async () => {
    await using server = await serverWith(limits)
    for (const bytes of [9_999, 10_000, 10_001, 250_000]) {
      const whole = await server.call('/webhooks/github', { method: 'POST', token: null, body: Buffer.alloc(bytes) })
      expect.soft([whole.status, await whole.text()]).toEqual([202, String(bytes)])
      const answer = await server.raw(
        `${head('transfer-encoding: chunked\r\nconnection: close\r\n')}${chunk(bytes)}0\r\n\r\n`,
      )
      expect.soft(statusOf(answer), String(bytes)).toBe(202)
      expect.soft(answer.endsWith(`${bytes}\r\n0\r\n\r\n`) || answer.endsWith(String(bytes)), answer).toBe(true)
    }
  })

  test('is given back: by those that are done, those that are refused and those that go away', async () => {
    await using server = await serverWith(limits)
    for (let n = 0; n < 6; n++) {
      const gone = client(server)
      await gone.send(`${announced(20_000_000)}${'x'.repeat(90_000)}`)
      gone.socket.destroy()
      await gone.ended
      const body = Buffer.alloc(290_000)
      const done = await server.call('/webhooks/github', { method: 'POST', token: null, body })
      expect(done.status).toBe(202)
    }
  })
})

describe('connections that do nothing', () => {
  const most = 20
  const flood: [string, string][] = [
    ['say nothing', ''],
    ['begin a head', 'GET /healthz HTTP/1.1\r\nhost: '],
    ['begin a body', `${announced(1_000)}0`],
    ['are kept alive after an answer', 'GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n'],
  ]
  test.each(flood)('%s: a newcomer takes the place of one of them', async (_name, text) => {
    await using server = await serverWith({}, { maxConnections: most })
    const all: Client[] = []
    for (let n = 0; n < most * 3; n++) {
      const one = client(server)
      all.push(one)
      await one.send(text)
      if (n % most === 0) await othersAreAnswered(server)
    }
    await othersAreAnswered(server)
    await Promise.all(all.slice(0, most).map(({ ended }) => ended))
    for (const { socket } of all) socket.destroy()
  })

  test('do not push out an upload that keeps coming, nor who watches', async () => {
    await using server = await serverWith({}, { maxConnections: most })
    const watching = await server.call('/api/events')
    const upload = client(server)
    await upload.send(head('content-length: 1000000\r\nconnection: close\r\n'))
    for (let n = 0; n < 10; n++) {
      await upload.send(Buffer.alloc(100_000))
      const idle = Array.from({ length: most }, () => client(server))
      await Promise.all(idle.map(({ socket }) => new Promise((done) => socket.once('connect', done))))
    }
    expect(statusOf(await upload.ended)).toBe(202)
    server.changes.emit({ type: 'codebase', id: 'c', name: 'seen' })
    const reader = (watching.body as ReadableStream<Uint8Array>).getReader()
    let seen = ''
    while (!seen.includes('"seen"')) seen += new TextDecoder().decode((await reader.read()).value)
    await reader.cancel()
  })

  test('are closed when they do not read what they asked for', async () => {
    // Far more than the kernel's buffers hold.
    const remotes = webhook(async () => ({ status: 200, body: 'x'.repeat(30_000_000) }))
    await using server = await makeServer({ deps: { remotes }, listen: { timeouts: { unreadMs: 200 } } })
    const { socket, send, ended } = client(server)
    socket.pause()
    await send(announced(0))
    // Whoever does not read learns by writing that nobody is there. The server reads no further request meanwhile.
    const isClosed = (): boolean => (socket.destroyed || socket.write(announced(0)), socket.destroyed)
    await expect.poll(isClosed, { timeout: 20_000, interval: 100 }).toBe(true)
    await ended
    expect(statusOf(await server.raw(healthRequest(server)))).toBe(200)
  })
})

describe('requests that are sent ahead', () => {
  const counted = () => {
    const seen = { all: 0, now: 0, mostAtOnce: 0 }
    const remotes = webhook(async ({ body }) => {
      seen.all += 1
      seen.now += 1
      seen.mostAtOnce = Math.max(seen.mostAtOnce, seen.now)
      await nextTurn()
      seen.now -= 1
      return { status: 202, body: `got ${Buffer.from(body).toString()}.` }
    })
    return { remotes, seen }
  }

  test('are answered one at a time and in their order', async () => {
    const { remotes, seen } = counted()
    await using server = await makeServer({ deps: { remotes } })
    const { send, ended } = client(server)
    const last = head('content-length: 1\r\nconnection: close\r\n')
    await send(`${announced(1)}a${announced(1)}b${announced(1)}c${last}d`)
    expect((await ended).match(/got .\./g)).toEqual(['got a.', 'got b.', 'got c.', 'got d.'])
    expect(seen).toMatchObject({ all: 4, mostAtOnce: 1 })
  })

  test('by the thousand end the connection, and cost the others nothing', async () => {
    const { remotes, seen } = counted()
    await using server = await makeServer({ deps: { remotes } })
    const many = Array.from({ length: 20 }, () => client(server))
    for (const { send } of many) void send(announced(0).repeat(2_000))
    await Promise.all(many.map(({ ended }) => ended))
    expect(seen.all).toBeLessThanOrEqual(many.length * maxUnanswered)
    await othersAreAnswered(server)
  })
})

import { connect } from 'node:net'
import { join } from 'node:path'
import { setImmediate as others } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Item } from '../../src/domain/fleet/item.ts'
import { recordEvent } from '../../src/fleet/events/record.ts'
import { eventStream } from '../../src/server/event-stream.ts'
import { openStore } from '../../src/store/open.ts'
import { makeServer, type ServerUnderTest } from '../helpers/server.ts'

let under: ServerUnderTest
beforeAll(async () => {
  under = await makeServer({ deps: { limits: { eventStreams: 3 } } })
})
afterAll(() => under[Symbol.asyncDispose]())

/** Reads until the text has come; what came so far. */
const reading = (answer: Response) => {
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader()
  const decoder = new TextDecoder()
  let text = ''
  return {
    until: async (wanted: string): Promise<string> => {
      while (!text.includes(wanted)) {
        const { done, value } = await reader.read()
        if (done) throw new Error(`ended before ${wanted}: ${text}`)
        text += decoder.decode(value, { stream: true })
      }
      return text
    },
    end: async (): Promise<string> => {
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return text
        text += decoder.decode(value, { stream: true })
      }
    },
    cancel: () => reader.cancel(),
  }
}

const post = (conversationId: string, message = 'hello'): Promise<Response> =>
  under.post('/test/message', { conversationId, message })

describe('the event stream', () => {
  test('delivers every change from its first byte on', async () => {
    const answer = await under.call('/api/events')
    expect(answer.headers.get('content-type')).toBe('text/event-stream')
    const stream = reading(answer)
    const accepted = (await (await post('events-1')).json()) as { id: string }
    const text = await stream.until(accepted.id)
    expect(text).toContain(
      `event: message\ndata: ${JSON.stringify({ type: 'message', platform: 'test', conversationId: 'events-1', id: accepted.id, state: 'waiting' })}\n\n`,
    )
    await stream.cancel()
  })

  test('is opened by the cookie, which is all that a page can send', async () => {
    const session = await under.call('/api/session', { method: 'POST' })
    const cookie = (session.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
    const answer = await under.call('/api/events', { token: null, headers: { cookie } })
    expect(answer.status).toBe(200)
    await answer.body?.cancel()
  })

  test('tells of one conversation where only that was asked for', async () => {
    const stream = reading(await under.call('/api/events?conversation=test:mine'))
    await post('other')
    under.changes.emit({ type: 'codebase', id: 'c', name: 'c' })
    under.changes.emit({
      type: 'reply',
      platform: 'test',
      conversationId: 'mine:2',
      id: 'r0',
      role: 'agent',
      text: 'no',
    })
    under.changes.emit({
      type: 'reply',
      platform: 'slack',
      conversationId: 'mine',
      id: 'r1',
      role: 'agent',
      text: 'no',
    })
    under.changes.emit({
      type: 'reply',
      platform: 'test',
      conversationId: 'mine',
      id: 'r2',
      role: 'agent',
      text: 'a\nb',
    })
    const text = await stream.until('"r2"')
    expect(text.match(/^event: /gm)).toHaveLength(1)
    expect(text).toContain('"text":"a\\nb"')
    await stream.cancel()
  })

  test('a reader who goes makes room for another; more than the limit get 429', async () => {
    const open = async (): Promise<Response> => under.call('/api/events')
    await expect
      .poll(async () => {
        const all = [await open(), await open(), await open()]
        const more = await open()
        const statuses = [...all, more].map(({ status }) => status)
        for (const one of [...all, more]) await one.body?.cancel()
        return statuses
      })
      .toEqual([200, 200, 200, 429])
    await expect
      .poll(async () => {
        const again = await open()
        await again.body?.cancel()
        return again.status
      })
      .toBe(200)
  })

  test('a reader who does not read is disconnected, and the work goes on', async () => {
    const socket = connect(under.server.port, '127.0.0.1')
    socket.write(
      `GET /api/events HTTP/1.1\r\nhost: 127.0.0.1:${under.server.port}\r\nauthorization: Bearer ${under.token}\r\n\r\n`,
    )
    await new Promise((resolve) => socket.once('data', resolve))
    socket.pause()
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.on('error', () => undefined)
    const text = 'x'.repeat(100_000)
    const before = process.memoryUsage().rss
    // The kernel's buffers of both ends come before ours.
    for (let i = 0; i < 400; i++) {
      under.changes.emit({ type: 'progress', platform: 'test', conversationId: 'c', kind: 'text', text })
      if (i % 20 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    expect(process.memoryUsage().rss - before).toBeLessThan(200_000_000)
    let received = 0
    socket.on('data', (chunk: Buffer) => {
      received += chunk.length
    })
    socket.resume()
    await closed
    expect(received).toBeLessThan(400 * 100_000)
    expect((await post('after')).status).toBe(202)
  })

  test('ends when the server stops, which does not wait for who only watches', async () => {
    const other = await makeServer()
    const stream = reading(await other.call('/api/events'))
    const stopped = other[Symbol.asyncDispose]()
    expect(await stream.end()).toContain(': watching')
    await stopped
  })
})

describe('health', () => {
  test('is 200 only when ready, without the token', async () => {
    let ready = false
    await using other = await makeServer({ deps: { ready: () => ready } })
    const starting = await other.call('/healthz', { token: null })
    expect([starting.status, await starting.json()]).toEqual([503, { status: 'starting' }])
    ready = true
    const well = await other.call('/healthz', { token: null })
    expect([well.status, await well.json()]).toEqual([200, { status: 'ok', uptimeSeconds: expect.any(Number) }])
  })
})

describe('metrics', () => {
  test('count what was accepted, what waits and what there is', async () => {
    await using other = await makeServer()
    const message = { conversationId: 'c', message: 'm', deliveryId: 'd' }
    for (let i = 0; i < 3; i++) await other.post('/test/message', message)
    other.changes.emit({ type: 'reply', platform: 'test', conversationId: 'c', id: 'r', role: 'agent', text: 't' })
    const text = await (await other.call('/metrics')).text()
    expect(text).toContain('coppice_messages_accepted_total{platform="test"} 1\n')
    expect(text).toContain('coppice_messages_duplicate_total{platform="test"} 2\n')
    expect(text).toContain('coppice_replies_sent_total{platform="test",role="agent"} 1\n')
    expect(text).toContain('coppice_messages{state="waiting"} 1\n')
    expect(text).toContain('coppice_replies{state="failed"} 0\n')
    expect(text).toMatch(/^process_resident_memory_bytes \d+$/m)
    for (const line of text.trim().split('\n')) {
      expect(line).toMatch(/^(?:# (?:HELP|TYPE) [a-z_]+ .+|[a-z_]+(?:\{(?:[a-z_]+="[^"\\\n]*",?)*\})? \d+(?:\.\d+)?)$/)
    }
  })
})

describe('events of the fleet', () => {
  const record = async ({ world }: ServerUnderTest, ...titles: string[]): Promise<void> => {
    const { store, ids, clock } = world.context
    for (const title of titles) {
      const item = { id: 7, title, codebaseId: world.codebase.id } as Item
      const parked = { kind: 'parked', item, reason: { kind: 'asked', note: undefined } } as const
      const event = title.startsWith('ask') ? parked : ({ kind: 'landed', item } as const)
      const recorder = { isolation: { ids, clock }, redact: (text: string) => text }
      await store.transaction((inside) => recordEvent(recorder, inside, event))
    }
  }
  const numbersIn = (text: string): string[] => [...text.matchAll(/^id: (\d+)$/gm)].map(([, number = '']) => number)
  type Page = { readonly events: { readonly number: number; readonly title: string }[]; readonly next: number }

  test('are listed by number and kind, with the number to continue after', async () => {
    await using other = await makeServer()
    const page = async (query: string): Promise<Page> =>
      (await (await other.call(`/api/events?${query}`)).json()) as Page
    expect(await page('limit=10')).toEqual({ events: [], next: 0 })
    await record(other, 'one', 'ask two', 'three', 'ask four')
    const first = await page('after=0&limit=3')
    expect([first.events.map(({ title }) => title), first.next]).toEqual([['one', 'ask two', 'three'], 3])
    expect(first.events[1]).toMatchObject({ number: 2, kind: 'parked', needsYou: true, codebase: 'project', item: 7 })
    expect((await page('after=3&limit=3')).events.map(({ number }) => number)).toEqual([4])
    expect((await page('kind=needs-you&limit=9')).events.map(({ number }) => number)).toEqual([2, 4])
    expect((await page('kind=landed&kind=closed&limit=9')).events.map(({ number }) => number)).toEqual([1, 3])
    for (const query of ['limit=0', 'limit=1001', 'after=-1', 'after=x', 'kind=nothing', 'after=1&after=2']) {
      expect([query, (await other.call(`/api/events?${query}`)).status]).toEqual([query, 400])
    }
    expect((await other.call('/api/events?after=0&limit=1', { token: null })).status).toBe(401)
  })

  test('are streamed with their numbers, and a client that reconnects gets what it missed', async () => {
    await using other = await makeServer()
    await record(other, 'before')
    const live = reading(await other.call('/api/events'))
    await record(other, 'one', 'two')
    const text = await live.until('"title":"two"')
    expect(numbersIn(text)).toEqual(['2', '3'])
    expect(text).toMatch(/^id: 2\nevent: fleet\ndata: \{"number":2,.*\}$/m)
    await live.cancel()
    await record(other, 'three')
    // The header counts more than the address: a browser sends both.
    const headers = { 'last-event-id': '2' }
    const again = reading(await other.call('/api/events?after=0', { headers }))
    expect(numbersIn(await again.until('"title":"three"'))).toEqual(['3', '4'])
    other.changes.emit({ type: 'codebase', id: 'c', name: 'c' })
    await record(other, 'ask four')
    expect(await again.until('ask four')).not.toContain('event: codebase')
    await again.cancel()
    const ofKind = reading(await other.call('/api/events?after=0&kind=needs-you'))
    expect(numbersIn(await ofKind.until('ask four'))).toEqual(['5'])
    await ofKind.cancel()
  })

  test('of other processes are found, when they say so and when they do not', async () => {
    await using other = await makeServer()
    const stream = reading(await other.call('/api/events'))
    const elsewhere = await openStore({ sqliteFile: join(other.world.context.home, 'coppice.db') })
    const there = { ...other, world: { ...other.world, context: { ...other.world.context, store: elsewhere } } }
    await record(there, 'one')
    await stream.until('"title":"one"')
    await record(there, 'two')
    await other.call('/api/wake', { method: 'POST' })
    await stream.until('"title":"two"')
    await elsewhere.close()
    await stream.cancel()
  })

  test('wait for a reader who is slow: no more is read than fits the buffer', async () => {
    const reads: number[] = []
    const item = { id: 7, title: 'x'.repeat(3_900) }
    const event = { kind: 'landed', item } as const
    const around = { at: 1, kind: 'landed', itemId: 7, agent: undefined, codebase: undefined, event }
    const stream = eventStream({
      subscribe: () => () => undefined,
      recorded: {
        after: 0,
        // There is always more.
        read: async (after) => {
          reads.push(after)
          await others()
          const events = Array.from({ length: 50 }, (_, i) => ({ ...around, number: after + 1 + i }))
          return { events, next: after + 50 }
        },
        subscribe: () => () => undefined,
      },
      redact: (text) => text,
      stopping: new AbortController().signal,
      disconnect: () => expect.unreachable(),
      heartbeatMs: 60_000,
      onEnd: () => undefined,
    })
    const turns = async (count: number): Promise<number> => {
      for (let i = 0; i < count; i += 1) await others()
      return reads.length
    }
    const full = await turns(100)
    expect(full).toBeLessThan(10)
    expect(await turns(100)).toBe(full)
    const reader = stream.getReader()
    const numbers: number[] = []
    while (numbers.length < 1_000) {
      const { value } = await reader.read()
      numbers.push(...numbersIn(new TextDecoder().decode(value)).map(Number))
    }
    expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, i) => i + 1))
    await reader.cancel()
    const ended = await turns(20)
    expect(await turns(20)).toBe(ended)
  })
})

import { progressOf, status } from '../helpers/progress.ts'
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createChanges } from '../../src/conversations/changes.ts'
import { DeliveryError, type OutgoingMessage } from '../../src/conversations/outbox/delivery.ts'
import { createOutbox } from '../../src/conversations/outbox/outbox.ts'
import type { Platform } from '../../src/platforms/platform.ts'
import { createLogger } from '../../src/process/log.ts'
import { inboxOf } from '../helpers/inbox.ts'
import { until } from '../helpers/server-process.ts'
import { openTestStore, type TestStore } from '../helpers/store.ts'
import { type GithubDouble, makeGithub, startDouble, type Trouble } from './github-double.ts'

const thread = 'acme/app#42'

let double: GithubDouble
beforeEach(async () => {
  double = await startDouble()
})
afterEach(() => double.close())

const make = async (clock: () => number = Date.now): Promise<Platform> => {
  const settings = { token: 'ghp_test', bot: 'coppice', apiUrl: double.url }
  const { platform } = await makeGithub(settings, { previewEveryMs: 20, timeoutMs: 1_500 }, clock)
  await platform.start(inboxOf(async () => ({ outcome: 'accepted', id: 'id' })))
  double.requests.length = 0
  return platform
}

const reply = (id: string, more: Partial<OutgoingMessage> = {}): OutgoingMessage => ({
  id,
  conversationId: thread,
  role: 'agent',
  text: 'Done.',
  part: 1,
  parts: 1,
  ...more,
})

const failure = async (sending: Promise<void>): Promise<DeliveryError> => {
  const error: unknown = await sending.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (error instanceof DeliveryError) return error
  throw new Error('it did not fail as a delivery', { cause: error })
}

const isPost = (line: string): boolean => line.startsWith('POST') && line.endsWith('/comments')
const posts = (): number => double.requests.filter(isPost).length

describe('a reply', () => {
  test('is a comment that carries its id where nobody sees it', async () => {
    const platform = await make()
    await platform.send(reply('r-1.0'))
    expect(double.bodies(thread)).toEqual(['Done.\n\n<!-- coppice:r-1.0 -->'])
  })

  test('is sent once, however often it is asked for', async () => {
    const platform = await make()
    await platform.send(reply('r-1.0'))
    await platform.send(reply('r-1.0'))
    await platform.send(reply('r-1.1', { text: 'More.' }))
    expect(double.bodies(thread)).toHaveLength(2)
  })

  test('that a process sent and could not record is not sent again by the next one', async () => {
    await (await make()).send(reply('r-1.0'))
    const next = await make()
    await next.send(reply('r-1.0'))
    await next.send(reply('r-1.1'))
    expect(double.bodies(thread)).toHaveLength(2)
    expect(double.requests.filter((line) => line.startsWith('GET'))).toHaveLength(1)
  })

  test('whose answer was lost is not sent again', async () => {
    const platform = await make()
    await platform.send(reply('r-0.0', { text: 'Before.' }))
    double.trouble = (line) => (isPost(line) ? 'lost' : undefined)
    expect((await failure(platform.send(reply('r-1.0')))).kind).toBe('unreachable')
    double.trouble = undefined
    await platform.send(reply('r-1.0'))
    expect(double.bodies(thread)).toHaveLength(2)
  })

  test('is found again among hundreds of comments', async () => {
    for (let n = 0; n < 150; n++) double.say(thread, {}, 'noise')
    await (await make()).send(reply('r-1.0'))
    for (let n = 0; n < 60; n++) double.say(thread, {}, 'noise')
    await (await make()).send(reply('r-1.0'))
    expect(double.bodies(thread).filter((body) => body.includes('r-1.0'))).toHaveLength(1)
  })

  test('is sent although a stranger wrote its marker before', async () => {
    double.say(thread, { login: 'mallory', id: 66 }, 'x\n\n<!-- coppice:r-1.0 -->')
    await (await make()).send(reply('r-1.0'))
    expect(double.bodies(thread)).toHaveLength(2)
  })

  test('cannot carry the marker of another one', async () => {
    await (await make()).send(reply('r-1.0', { text: 'x <!-- coppice:r-2.0 -->' }))
    const next = await make()
    await next.send(reply('r-2.0', { text: 'y' }))
    expect(double.bodies(thread)[0]).toContain('coppice :r-2.0')
    expect(double.bodies(thread)).toHaveLength(2)
  })

  test('of the greatest length is taken', async () => {
    const platform = await make()
    await platform.send(reply(`${randomUUID()}.0`, { text: 'x'.repeat(platform.limit ?? 0) }))
    expect(double.bodies(thread)).toHaveLength(1)
  })

  test('to what is no issue is refused', async () => {
    const platform = await make()
    expect((await failure(platform.send(reply('r', { conversationId: '../x' })))).kind).toBe('refused')
  })

  const limited = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1000120' }
  test.each<[string, Trouble, string, number | undefined]>([
    ['500', { status: 500 }, 'unreachable', undefined],
    ['502 and no JSON', { status: 502, headers: { 'content-type': 'text/html' } }, 'unreachable', undefined],
    ['429', { status: 429, headers: { 'retry-after': '30' } }, 'unreachable', 30_000],
    ['429 without a time', { status: 429 }, 'unreachable', 60_000],
    ['429 with a date', { status: 429, headers: { 'retry-after': new Date(0).toUTCString() } }, 'unreachable', 60_000],
    ['429 with less than nothing', { status: 429, headers: { 'retry-after': '-5' } }, 'unreachable', 0],
    ['429 with a century', { status: 429, headers: { 'retry-after': '3e9' } }, 'unreachable', 3_600_000],
    ['a used-up quota', { status: 403, headers: limited }, 'unreachable', 120_000],
    [
      'the secondary limit',
      { status: 403, body: { message: 'You have exceeded a secondary rate limit' } },
      'unreachable',
      60_000,
    ],
    ['nothing', 'silent', 'unreachable', undefined],
    ['401', { status: 401 }, 'unreachable', 60_000],
    [
      '403',
      { status: 403, body: { message: 'Unable to create comment because issue is locked.' } },
      'refused',
      undefined,
    ],
    ['404', { status: 404 }, 'refused', undefined],
    ['410', { status: 410 }, 'refused', undefined],
    ['422', { status: 422 }, 'refused', undefined],
  ])('that is answered by %s is tried again, or not', async (_what, trouble, kind, retryAfterMs) => {
    let now = 1_000_000_000
    const platform = await make(() => now)
    double.trouble = (line) => (isPost(line) ? trouble : undefined)
    const error = await failure(platform.send(reply('r-1.0')))
    expect([error.kind, error.retryAfterMs]).toEqual([kind, retryAfterMs])
    // Once: whoever would try again blindly would double it.
    expect(posts()).toBe(1)
    if (kind === 'refused') return
    double.trouble = undefined
    now += retryAfterMs ?? 0
    await platform.send(reply('r-1.0'))
    expect(double.bodies(thread)).toHaveLength(1)
  })

  test('waits without asking while GitHub has asked for a pause, whatever thread that was said in', async () => {
    let now = 1_000_000_000
    const platform = await make(() => now)
    double.trouble = (line) => (isPost(line) ? { status: 429, headers: { 'retry-after': '30' } } : undefined)
    await failure(platform.send(reply('r-1.0')))
    double.trouble = undefined
    const asked = double.requests.length
    now += 1_000
    const held = await failure(platform.send(reply('r-2.0', { conversationId: 'acme/other#7' })))
    expect([held.kind, held.retryAfterMs]).toEqual(['unreachable', 29_000])
    expect(double.requests).toHaveLength(asked)
    now += 29_000
    await platform.send(reply('r-2.0', { conversationId: 'acme/other#7' }))
    expect(double.bodies('acme/other#7')).toHaveLength(1)
  })

  test('beyond what GitHub takes at its pace waits outside, so that others can pass', async () => {
    const platform = await make()
    double.trouble = (line) => (isPost(line) ? 'silent' : undefined)
    const sending = Array.from({ length: 8 }, (_, n) =>
      failure(platform.send(reply(`r-${n}.0`, { conversationId: `acme/app#${n + 1}` }))),
    )
    const errors = await Promise.all(sending)
    expect(errors.filter(({ retryAfterMs }) => retryAfterMs === 15_000)).toHaveLength(3)
    expect(posts()).toBe(5)
  })
})

describe('while the agent speaks', () => {
  const shown = (text: string): Promise<unknown> =>
    until(`"${text}" is shown`, async () => double.bodies(thread).some((body) => body.startsWith(text)) || undefined)

  test('one comment is written, edited, and becomes the reply', async () => {
    const platform = await make()
    platform.preview?.(thread, progressOf('I am'))
    await shown(`I am\n\n${status}\n\n…`)
    platform.preview?.(thread, progressOf('I am looking'))
    await shown(`I am looking\n\n${status}\n\n…`)
    await platform.send(reply('r-1.0', { text: 'I am looking. Done.' }))
    expect(double.bodies(thread)).toEqual(['I am looking. Done.\n\n<!-- coppice:r-1.0 -->'])
    expect(posts()).toBe(1)
  })

  test('a quick answer needs no preview', async () => {
    const platform = await make()
    platform.preview?.(thread, progressOf('I'))
    await platform.send(reply('r-1.0'))
    expect(double.requests.filter((line) => line.startsWith('PATCH'))).toEqual([])
    expect(double.bodies(thread)).toHaveLength(1)
  })

  test('notices in between are comments of their own, and a second reply too', async () => {
    const platform = await make()
    platform.preview?.(thread, progressOf('I am'))
    await shown('I am')
    await platform.send(reply('n-1.0', { role: 'system', text: 'Working in isolated branch' }))
    await platform.send(reply('r-1.0'))
    await platform.send(reply('r-1.1', { part: 2, parts: 2, text: 'And more.' }))
    expect(double.bodies(thread).map((body) => body.split('\n')[0])).toEqual([
      'Done.',
      'Working in isolated branch',
      'And more.',
    ])
  })

  test('what a dead process was showing becomes the reply of the next one', async () => {
    const dead = await make()
    dead.preview?.(thread, progressOf('I am'))
    await shown('I am')
    await (await make()).send(reply('r-1.0'))
    expect(double.bodies(thread)).toEqual(['Done.\n\n<!-- coppice:r-1.0 -->'])
  })

  test('a comment of somebody else is never edited', async () => {
    double.say(thread, { id: 66, login: 'mallory' }, 'mine\n\n<!-- coppice:preview -->')
    await (await make()).send(reply('r-1.0'))
    expect(double.bodies(thread)).toHaveLength(2)
  })

  test('a preview whose answer was lost becomes the reply', async () => {
    const platform = await make()
    double.trouble = (line) => (isPost(line) ? 'lost' : undefined)
    platform.preview?.(thread, progressOf('I am'))
    await shown('I am')
    await until('it is over', async () => (platform.status?.().lastError === undefined ? undefined : true))
    double.trouble = undefined
    await platform.send(reply('r-1.0'))
    expect(double.bodies(thread)).toEqual(['Done.\n\n<!-- coppice:r-1.0 -->'])
  })

  test('a preview that somebody deleted costs nothing', async () => {
    const platform = await make()
    platform.preview?.(thread, progressOf('I am'))
    await shown('I am')
    double.comments.clear()
    await platform.send(reply('r-1.0'))
    expect(double.bodies(thread)).toEqual(['Done.\n\n<!-- coppice:r-1.0 -->'])
  })

  test('a final edit that fails is made again', async () => {
    const platform = await make()
    platform.preview?.(thread, progressOf('I am'))
    await shown('I am')
    double.trouble = (line) => (line.startsWith('PATCH') ? { status: 502 } : undefined)
    expect((await failure(platform.send(reply('r-1.0')))).kind).toBe('unreachable')
    double.trouble = undefined
    await platform.send(reply('r-1.0'))
    expect(double.bodies(thread)).toEqual(['Done.\n\n<!-- coppice:r-1.0 -->'])
  })

  test('the next run has a comment of its own', async () => {
    const platform = await make()
    platform.preview?.(thread, progressOf('First run'))
    await shown('First run')
    platform.preview?.(thread, progressOf('Second', { startedAt: 10 ** 14 + 1 }))
    await shown('Second')
    await platform.send(reply('r-2.0', { text: 'Second done.' }))
    expect(double.bodies(thread).map((body) => body.split('\n')[0])).toEqual(['First run', 'Second done.'])
  })

  test('very long words are shown by their end', async () => {
    const platform = await make()
    platform.preview?.(thread, progressOf(`${'x'.repeat(70_000)}end`))
    await until('it is shown', async () => double.bodies(thread)[0]?.includes(`end\n\n${status}\n\n…`) || undefined)
  })
})

describe('an outage', () => {
  let opened: TestStore
  beforeEach(async () => {
    opened = await openTestStore()
  })
  afterEach(() => opened.close())

  const log = createLogger({ write: () => undefined, level: 'error', clock: Date.now, redact: (text) => text })

  test.each<[string, readonly Trouble[]]>([
    ['500', [{ status: 500 }]],
    ['429', [{ status: 429, headers: { 'retry-after': '20' } }]],
    ['nothing at all', ['silent']],
    ['answers that are lost', ['lost']],
    ['all of that', [{ status: 500 }, 'lost', { status: 429, headers: { 'retry-after': '5' } }, 'silent', 'lost']],
  ])('of %s: every reply arrives, in order, none doubled', async (_what, troubles) => {
    let now = Date.now()
    const platform = await make(() => now)
    const outbox = createOutbox({
      store: opened.store,
      deliveries: new Map([['github', platform]]),
      changes: createChanges(),
      clock: () => now,
      log,
      redact: (text) => text,
      failpoint: async () => undefined,
    })
    const conversations = ['acme/app#1', 'acme/app#2', 'acme/app#3']
    for (let n = 0; n < 4; n++) {
      for (const conversationId of conversations) {
        const row = { id: `${conversationId.slice(-1)}-${n}`, platform: 'github', conversationId, inboxId: undefined }
        const said = { key: `k${n}`, role: n % 2 === 0 ? ('system' as const) : ('agent' as const), text: `reply ${n}` }
        await opened.store.outbox.append([{ ...row, ...said, nextAttemptAt: now, createdAt: now + n }])
      }
    }
    let request = 0
    let isOver = false
    double.trouble = () => {
      request += 1
      // Now and then one gets through, so that it begins again in the middle.
      return isOver || request % 4 === 0 ? undefined : troubles[request % troubles.length]
    }
    for (let round = 0; round < 40; round++) {
      // A minute of outage, seen through a clock that need not be waited for.
      if (round === 8) isOver = true
      outbox.kick()
      await outbox.idle()
      const waiting = await opened.store.outbox.nextDueAt(['github'])
      if (waiting === undefined) break
      now = Math.max(now, waiting) + 1
    }
    await outbox.stop()
    for (const conversationId of conversations) {
      expect(double.bodies(conversationId).map((body) => body.split('\n')[0])).toEqual([
        'reply 0',
        'reply 1',
        'reply 2',
        'reply 3',
      ])
    }
  })
})

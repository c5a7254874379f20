import { afterEach, expect, test, vi } from 'vitest'
import { progressOf } from '../../../test/helpers/progress.ts'
import { DeliveryError, type OutgoingMessage } from '../../conversations/outbox/delivery.ts'
import { createLogger } from '../../process/log.ts'
import { discordReplies } from '../discord/reply-port.ts'
import { createThreads } from '../discord/threads.ts'
import { githubReplies } from '../github/reply-port.ts'
import { slackReplies } from '../slack/reply-port.ts'
import { telegramReplies } from '../telegram/reply-port.ts'
import { createReplies } from './engine.ts'
import type { Call, Mark, Pace, RateLimit, ReplyPort } from './port.ts'

const log = createLogger({ write: () => undefined, level: 'error', clock: Date.now, redact: (text) => text })
const unused = {} as never
const github = (isApp: boolean) =>
  githubReplies({ client: unused, reviews: unused, self: unused, clock: Date.now, isApp })
const telegram = telegramReplies({ api: unused, log, buttons: unused, previewEveryMs: 1 })
const discord = discordReplies({
  api: unused,
  clock: Date.now,
  previewEveryMs: 1,
  buttons: unused,
  threads: createThreads(unused),
  onPostedInChannel: unused,
})
const slack = slackReplies(unused)

const unitOf = <Place>(port: ReplyPort<Place, never>, conversationId: string, call: Call): string => {
  const place = port.placeOf(conversationId)
  if (place === undefined) throw new Error(`${conversationId} is not a conversation there`)
  return port.rateLimitOf(place, call).name
}

type AnyPort = ReplyPort<never, never>

test.each<[string, unknown, Call, string, string, boolean]>([
  ['Slack: two threads of a channel', slack, 'post', 'C1:1.2', 'C1:3.4', true],
  ['Slack: two channels', slack, 'post', 'C1:1.2', 'C2:1.2', false],
  ['Slack: edits in the workspace', slack, 'edit', 'C1:1.2', 'C2:3.4', true],
  ['Telegram: two topics of a chat', telegram, 'post', '-100:5', '-100:6', true],
  ['Telegram: two chats', telegram, 'edit', '7', '8', false],
  ['Discord: two threads of a channel', discord, 'post', '1:2', '1:3', false],
  ['GitHub with a token: two accounts', github(false), 'post', 'acme/app#1', 'other/app#1', true],
  ['GitHub as an app: two repositories of an account', github(true), 'edit', 'acme/app#1', 'Acme/web#1', true],
  ['GitHub as an app: two installations', github(true), 'post', 'acme/app#1', 'other/app#1', false],
])('%s: one limit? %#', (_what, port, call, one, other, together) => {
  const given = port as AnyPort
  expect(unitOf(given, one, call) === unitOf(given, other, call)).toBe(together)
})

test.each<[string, unknown, string, string]>([
  ['Slack: the workspace', slack, 'C1:1.2', 'C2:3.4'],
  ['Telegram: the bot', telegram, '7', '8'],
  ['Discord: the bot', discord, '1:2', '1:3'],
])('previews of all conversations share a pace, whether posted or edited. %s', (_what, port, one, other) => {
  const widest = (conversationId: string, call: Call): string => {
    const given = port as AnyPort
    let pace: Pace = given.rateLimitOf(given.placeOf(conversationId) as never, call)
    while (pace.within !== undefined) pace = pace.within
    return pace.name
  }
  expect(new Set([widest(one, 'post'), widest(one, 'edit'), widest(other, 'post'), widest(other, 'edit')]).size).toBe(1)
})

test.each(['post', 'edit'] as const)('on GitHub a preview comes at most every 15 s, whether by %s', (call) => {
  const port = github(true)
  const place = port.placeOf('acme/app#1')
  expect(place && port.rateLimitOf(place, call).everyMs).toBe(15_000)
})

test('in a Telegram group previews come half as often as in private', () => {
  const every = [telegram.placeOf('7'), telegram.placeOf('-100:5')].map(
    (place) => place && telegram.rateLimitOf(place, 'edit').everyMs,
  )
  expect(every).toEqual([1, 2])
})

test('on Discord a limit of edits is none of posts, on Telegram it is', () => {
  expect(unitOf(discord as unknown as AnyPort, '1:2', 'edit')).not.toBe(
    unitOf(discord as unknown as AnyPort, '1:2', 'post'),
  )
  expect(unitOf(telegram as unknown as AnyPort, '7', 'edit')).toBe(unitOf(telegram as unknown as AnyPort, '7', 'post'))
})

afterEach(() => vi.useRealTimers())

/** A service that notes when it is called; each first letter of a conversation is a unit. */
const pacedService = () => {
  vi.useFakeTimers()
  const calls: { readonly at: number; readonly call: Call; readonly place: string; readonly mark: Mark }[] = []
  const note = (call: Call, place: string, mark: Mark): void => {
    calls.push({ at: Date.now(), call, place, mark })
  }
  const port: ReplyPort<string, string> = {
    placeOf: (id) => id,
    rateLimitOf: (place, call) => ({
      name: `${call} ${place}`,
      everyMs: 100,
      within: { name: place.slice(0, 1), everyMs: 1_000 },
    }),
    render: (text) => text,
    post: async (place, _body, mark) => {
      note('post', place, mark)
      return place
    },
    edit: async (place, _id, _body, mark) => note('edit', place, mark),
    failureOf: (error) => ({ error: error as DeliveryError, mayHaveSucceeded: false }),
    previews: { limit: 500, render: (text) => text, firstMs: 10, whenOvertaken: 'stay' },
  }
  const gapsOf = (unit: string): number[] => {
    const times = calls.filter(({ place }) => place.startsWith(unit)).map(({ at }) => at)
    return times.slice(1).map((at, n) => at - (times[n] ?? 0))
  }
  return { port, calls, gapsOf, replies: createReplies(port, { clock: Date.now, log }) }
}

const answer = (conversationId: string): OutgoingMessage => ({
  id: `r-${conversationId}`,
  conversationId,
  role: 'agent',
  text: 'Done.',
  part: 1,
  parts: 1,
})

test('many conversations that show previews keep to the pace of their unit, each in its turn', async () => {
  const { calls, gapsOf, replies } = pacedService()
  const all = Array.from({ length: 8 }, (_, n) => `a${n}`)
  for (let second = 0; second < 80; second++) {
    for (const id of [...all, 'b0']) replies.preview(id, progressOf(`word ${second}`))
    await vi.advanceTimersByTimeAsync(1_000)
  }
  expect(Math.min(...gapsOf('a'))).toBeGreaterThanOrEqual(1_000)
  // A post counts like an edit, and the other unit isn't slowed down.
  for (const id of all) expect([9, 10]).toContain(calls.filter(({ place }) => place === id).length)
  expect(gapsOf('b').length).toBeGreaterThan(70)
})

test('a reply goes at once, and the next preview of its unit waits for it', async () => {
  const { calls, gapsOf, replies } = pacedService()
  for (const id of ['a1', 'a2', 'a3']) replies.preview(id, progressOf('one'))
  await vi.advanceTimersByTimeAsync(1_500)
  const asked = Date.now()
  await replies.send(answer('a4'))
  expect(calls.at(-1)).toMatchObject({ at: asked, place: 'a4', mark: { kind: 'reply' } })
  await vi.advanceTimersByTimeAsync(5_000)
  expect(calls.map(({ place }) => place)).toEqual(['a1', 'a2', 'a4', 'a3'])
  expect(gapsOf('a').at(-1)).toBe(1_000)
})

test('a preview that becomes the reply counts too', async () => {
  const { calls, gapsOf, replies } = pacedService()
  replies.preview('a1', progressOf('one'))
  await vi.advanceTimersByTimeAsync(1_500)
  replies.preview('a2', progressOf('one'))
  await replies.send(answer('a1'))
  await vi.advanceTimersByTimeAsync(2_000)
  expect(calls.map(({ place }) => place)).toEqual(['a1', 'a1', 'a2'])
  expect(gapsOf('a').at(-1)).toBe(1_000)
})

test('while the service asks a unit to wait, none of its previews are tried, and all come later', async () => {
  const { port, calls, replies } = pacedService()
  let refusals = 0
  const unit = (place: string): RateLimit => ({ name: place.slice(0, 1), everyMs: 100 })
  const limited = createReplies(
    { ...port, rateLimitOf: unit, post: (...call) => (refusals++ === 0 ? tooMany() : port.post(...call)) },
    {
      clock: Date.now,
      log,
    },
  )
  for (const id of ['a1', 'a2', 'a3']) limited.preview(id, progressOf('one'))
  await vi.advanceTimersByTimeAsync(29_000)
  expect(calls).toEqual([])
  await vi.advanceTimersByTimeAsync(17_000)
  expect(calls.map(({ place }) => place).toSorted()).toEqual(['a1', 'a2', 'a3'])
  replies.stopPreviews()
})

const tooMany = () => Promise.reject(new DeliveryError('unreachable', 'slower', { retryAfterMs: 30_000 }))

test('a clock that is set back ends a pause, and delays no preview', async () => {
  const { port, calls } = pacedService()
  let refusals = 0
  const unit = (place: string): RateLimit => ({ name: place.slice(0, 1), everyMs: 100 })
  let setBackMs = 0
  const limited = createReplies(
    { ...port, rateLimitOf: unit, post: (...call) => (refusals++ === 0 ? tooMany() : port.post(...call)) },
    { clock: () => Date.now() - setBackMs, log },
  )
  await expect(limited.send(answer('a1'))).rejects.toMatchObject({ retryAfterMs: 30_000 })
  limited.preview('a2', progressOf('one'))
  setBackMs = 600_000
  await vi.advanceTimersByTimeAsync(11_000)
  expect(calls.map(({ place }) => place)).toEqual(['a2'])
  await limited.send(answer('a1'))
  limited.stopPreviews()
})

test('no timer is left once nothing runs', async () => {
  const { replies } = pacedService()
  replies.preview('a1', progressOf('one'))
  replies.preview('a2', progressOf('one'))
  await vi.advanceTimersByTimeAsync(5_000)
  expect(vi.getTimerCount()).toBe(1)
  await replies.send(answer('a1'))
  replies.preview('a2', undefined)
  expect(vi.getTimerCount()).toBe(0)
})

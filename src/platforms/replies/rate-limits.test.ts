import { afterEach, expect, test, vi } from 'vitest'
import { createLogger } from '../../process/log.ts'
import { discordReplies } from '../discord/reply-port.ts'
import { githubReplies } from '../github/reply-port.ts'
import { slackReplies } from '../slack/reply-port.ts'
import { telegramReplies } from '../telegram/reply-port.ts'
import { createReplies } from './engine.ts'
import type { Call, ReplyPort } from './port.ts'

const log = createLogger({ write: () => undefined, level: 'error', clock: Date.now, redact: (text) => text })
const unused = {} as never
const github = (isApp: boolean) =>
  githubReplies({ client: unused, self: unused, clock: Date.now, previewEveryMs: 1, isApp })
const telegram = telegramReplies({ api: unused, log, previewEveryMs: 1 })
const discord = discordReplies({ api: unused, clock: Date.now, previewEveryMs: 1 })
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

test('on Discord a limit of edits is none of posts, on Telegram it is', () => {
  expect(unitOf(discord as unknown as AnyPort, '1:2', 'edit')).not.toBe(
    unitOf(discord as unknown as AnyPort, '1:2', 'post'),
  )
  expect(unitOf(telegram as unknown as AnyPort, '7', 'edit')).toBe(unitOf(telegram as unknown as AnyPort, '7', 'post'))
})

afterEach(() => vi.useRealTimers())

test('conversations that show previews share the pace of their unit', async () => {
  vi.useFakeTimers()
  const edited: string[] = []
  const port: ReplyPort<string, string> = {
    placeOf: (id) => id,
    rateLimitOf: (place) => ({ name: place.slice(0, 1), everyMs: 1_000 }),
    render: (text) => text,
    post: async (place) => place,
    edit: async (place) => void edited.push(place),
    failureOf: (error) => {
      throw error
    },
    previews: { render: (text) => text, firstMs: 10, whenOvertaken: 'stay' },
  }
  const replies = createReplies(port, { clock: Date.now, log })
  const all = ['a1', 'a2', 'a3', 'b1']
  for (const id of all) replies.preview(id, 'one')
  await vi.advanceTimersByTimeAsync(10)
  for (const id of all) replies.preview(id, 'one two')
  await vi.advanceTimersByTimeAsync(1_000)
  expect(edited).toEqual(['b1'])
  await vi.advanceTimersByTimeAsync(2_000)
  expect(edited.toSorted()).toEqual(['a1', 'a2', 'a3', 'b1'])
  // Two of them have said nothing for a while.
  await vi.advanceTimersByTimeAsync(120_000)
  replies.preview('a1', 'one two three')
  await vi.advanceTimersByTimeAsync(1_000)
  expect(edited).toHaveLength(5)
})

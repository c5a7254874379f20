import { type APIUser, ChannelType, MessageType } from 'discord.js'
import { describe, expect, test } from 'vitest'
import { type CreatedMessage, isForUs, parseMessage, threadName } from './parse.ts'

const self = '900000000000000001'
const bot = { id: self, username: 'coppice', bot: true } as APIUser
const alice = { id: '100000000000000001', username: 'alice' } as APIUser
const text = { type: ChannelType.GuildText, parentId: undefined }

const message = (content: string, more: Partial<CreatedMessage> = {}): CreatedMessage =>
  ({
    id: '200000000000000001',
    channel_id: '300000000000000001',
    guild_id: '400000000000000001',
    author: alice,
    content,
    type: MessageType.Default,
    edited_timestamp: null,
    mentions: content.includes(self) ? [bot] : [],
    ...more,
  }) as CreatedMessage

const call = `<@${self}>`
const why = (one: CreatedMessage): string | undefined => isForUs(one, self).ignored

describe('isForUs', () => {
  test('accepts a mention, in the current and the old form', () => {
    expect(why(message(`${call} fix it`))).toBeUndefined()
    expect(why(message(`please <@!${self}> fix it`))).toBeUndefined()
  })

  test('accepts every direct message', () => {
    const { guild_id: _none, ...direct } = message('fix it')
    expect(why(direct as CreatedMessage)).toBeUndefined()
  })

  test.each([
    ['a message without a mention', message('fix it')],
    ['a mention in inline code', message(`write \`${call}\` to ask`)],
    ['a mention in a code block', message(`\`\`\`\n${call} x\n\`\`\``)],
    ['a mention in a quoted line', message(`> ${call} fix it\nI saw that`)],
    ['a mention in a quoted block', message(`see\n>>> old words\n${call} fix it`)],
    ['a reply to us that pings us but has no mention', message('thanks!', { mentions: [bot] })],
    ['a message from a bot', message(`${call} x`, { author: { ...alice, bot: true } })],
    ['our own message', message(`${call} x`, { author: bot })],
    ['a webhook message', message(`${call} x`, { webhook_id: '5' })],
    ['a message from an application', message(`${call} x`, { application_id: '5' })],
    ['a pin notice', message(`${call} x`, { type: MessageType.ChannelPinnedMessage })],
    ["the copy of a thread's first message", message(`${call} x`, { type: MessageType.ThreadStarterMessage })],
    ['an edited message', message(`${call} x`, { edited_timestamp: '2026-01-01T00:00:00Z' })],
  ])('ignores %s', (_what, one) => expect(why(one)).toEqual(expect.any(String)))
})

describe('the conversation', () => {
  const place = (one: CreatedMessage, channel: Parameters<typeof parseMessage>[2]) => {
    const parsed = parseMessage(one, self, channel)
    return 'message' in parsed ? parsed.message : parsed
  }

  test("a mention in a channel starts a thread with the message's ID", () =>
    expect(place(message(`${call} Fix the login`), text)).toMatchObject({
      deliveryId: '200000000000000001',
      conversationId: '300000000000000001:200000000000000001',
      channelId: '300000000000000001',
      userId: alice.id,
      text: 'Fix the login',
      threadName: 'Fix the login',
    }))

  test('a mention in a thread belongs to that thread', () =>
    expect(place(message(`${call} and this`), { type: ChannelType.PublicThread, parentId: '7' })).toMatchObject({
      conversationId: '7:300000000000000001',
      channelId: '7',
      threadName: undefined,
    }))

  test('a direct message belongs to its channel', () => {
    const { guild_id: _none, ...direct } = message('fix it')
    expect(place(direct as CreatedMessage, undefined)).toMatchObject({
      conversationId: '300000000000000001',
      channelId: undefined,
      threadName: undefined,
    })
  })

  test('a mention in a channel without threads is ignored', () =>
    expect(place(message(`${call} x`), { type: ChannelType.GuildVoice, parentId: undefined })).toEqual({
      ignored: 'in a channel without threads',
    }))
})

test('the text has no leading mention of us, names instead of IDs, and no invisible characters', () => {
  const one = message(`${call}, ask <@${alice.id}>\u200B\u{E0041} about \u202Eit`, { mentions: [bot, alice] })
  expect(parseMessage(one, self, text)).toMatchObject({ message: { text: 'ask @alice about it' } })
})

test('a mention without any other text is ignored', () =>
  expect(parseMessage(message(`${call} \u200B`), self, text)).toEqual({ ignored: 'without text' }))

test('a thread name is one line of at most 100 characters and never splits a surrogate pair', () => {
  expect(threadName('a\n\nb')).toBe('a b')
  const long = threadName(`${'x'.repeat(98)}😀😀`)
  expect(long).toBe(`${'x'.repeat(98)}…`)
  expect(threadName('y'.repeat(300))).toHaveLength(100)
})

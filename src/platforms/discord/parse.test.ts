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

describe('what is for us', () => {
  test('a mention, also in the old form', () => {
    expect(why(message(`${call} fix it`))).toBeUndefined()
    expect(why(message(`please <@!${self}> fix it`))).toBeUndefined()
  })

  test('everything that is said in private', () => {
    const { guild_id: _none, ...direct } = message('fix it')
    expect(why(direct as CreatedMessage)).toBeUndefined()
  })

  test.each([
    ['without a mention', message('fix it')],
    ['a mention in inline code', message(`write \`${call}\` to ask`)],
    ['a mention in a code block', message(`\`\`\`\n${call} x\n\`\`\``)],
    ['a mention in a quoted line', message(`> ${call} fix it\nI saw that`)],
    ['a mention in a quoted rest', message(`see\n>>> old words\n${call} fix it`)],
    ['a reply to us with the ping left on', message('thanks!', { mentions: [bot] })],
    ['a bot', message(`${call} x`, { author: { ...alice, bot: true } })],
    ['ourselves', message(`${call} x`, { author: bot })],
    ['a webhook', message(`${call} x`, { webhook_id: '5' })],
    ['an application', message(`${call} x`, { application_id: '5' })],
    ['a pin', message(`${call} x`, { type: MessageType.ChannelPinnedMessage })],
    ['the first message of a thread, told again', message(`${call} x`, { type: MessageType.ThreadStarterMessage })],
    ['an edited one', message(`${call} x`, { edited_timestamp: '2026-01-01T00:00:00Z' })],
  ])('never %s', (_what, one) => expect(why(one)).toEqual(expect.any(String)))
})

describe('where it belongs', () => {
  const place = (one: CreatedMessage, channel: Parameters<typeof parseMessage>[2]) => {
    const parsed = parseMessage(one, self, channel)
    return 'message' in parsed ? parsed.message : parsed
  }

  test('a mention in a channel begins a thread that has the id of the message', () =>
    expect(place(message(`${call} Fix the login`), text)).toMatchObject({
      deliveryId: '200000000000000001',
      conversationId: '300000000000000001:200000000000000001',
      channelId: '300000000000000001',
      userId: alice.id,
      text: 'Fix the login',
      threadName: 'Fix the login',
    }))

  test('a mention in a thread stays there', () =>
    expect(place(message(`${call} and this`), { type: ChannelType.PublicThread, parentId: '7' })).toMatchObject({
      conversationId: '7:300000000000000001',
      channelId: '7',
      threadName: undefined,
    }))

  test('a direct message is a conversation of its channel', () => {
    const { guild_id: _none, ...direct } = message('fix it')
    expect(place(direct as CreatedMessage, undefined)).toMatchObject({
      conversationId: '300000000000000001',
      channelId: undefined,
      threadName: undefined,
    })
  })

  test('where there can be no thread, nothing begins', () =>
    expect(place(message(`${call} x`), { type: ChannelType.GuildVoice, parentId: undefined })).toEqual({
      ignored: 'in a channel without threads',
    }))
})

test('the call is no part of the text, others are called by their names, and what nobody sees is gone', () => {
  const one = message(`${call}, ask <@${alice.id}>\u200B\u{E0041} about \u202Eit`, { mentions: [bot, alice] })
  expect(parseMessage(one, self, text)).toMatchObject({ message: { text: 'ask @alice about it' } })
})

test('a mention without words is no order', () =>
  expect(parseMessage(message(`${call} \u200B`), self, text)).toEqual({ ignored: 'without text' }))

test('the name of a thread is one line of at most 100 characters, none of them halved', () => {
  expect(threadName('a\n\nb')).toBe('a b')
  const long = threadName(`${'x'.repeat(98)}😀😀`)
  expect(long).toBe(`${'x'.repeat(98)}…`)
  expect(threadName('y'.repeat(300))).toHaveLength(100)
})

import { expect, test } from 'vitest'
import { conversationIdOf, parseEvent, threadOf } from './parse.ts'

const self = { teamId: 'T1', enterpriseId: undefined, userId: 'UBOT', botId: 'B1', name: 'coppice', url: undefined }

const mention = (event: Record<string, unknown> = {}, envelope: Record<string, unknown> = {}): unknown => ({
  type: 'event_callback',
  team_id: 'T1',
  event_id: 'Ev1',
  event: {
    type: 'app_mention',
    user: 'U1',
    text: '<@UBOT> fix it',
    ts: '1712345678.000100',
    channel: 'C1',
    ...event,
  },
  ...envelope,
})
const direct = (event: Record<string, unknown> = {}): unknown =>
  mention({ type: 'message', channel: 'D1', channel_type: 'im', text: 'fix it', ...event })

test('a mention in a channel begins a thread of its own', () => {
  expect(parseEvent(mention(), self)).toEqual({
    message: {
      deliveryId: 'C1:1712345678.000100',
      channel: 'C1',
      ts: '1712345678.000100',
      threadTs: '1712345678.000100',
      user: 'U1',
      foreignTeam: undefined,
      text: 'fix it',
      attachments: [],
      snippets: [],
      forwarded: undefined,
    },
  })
})

test('a mention in a thread belongs to that thread', () => {
  const parsed = parseEvent(mention({ thread_ts: '1700000000.000001' }), self)
  expect(parsed).toMatchObject({ message: { threadTs: '1700000000.000001', ts: '1712345678.000100' } })
  expect('message' in parsed && conversationIdOf(parsed.message)).toBe('C1:1700000000.000001')
})

test('a direct message needs no mention', () => {
  expect(parseEvent(direct(), self)).toMatchObject({ message: { channel: 'D1', text: 'fix it' } })
})

test.each([
  ['an edited message', direct({ subtype: 'message_changed', message: { text: 'fix it' } })],
  ['a deleted message', direct({ subtype: 'message_deleted' })],
  ['a mention that an edit added', mention({ edited: { user: 'U1', ts: '1712345679.000100' } })],
  ['a hidden message', direct({ hidden: true })],
  ['somebody who joined', direct({ subtype: 'channel_join' })],
  ['a bot’s message', mention({ bot_id: 'B2' })],
  ['a bot’s message of the old kind', direct({ subtype: 'bot_message', bot_id: 'B2' })],
  ['a message by an app for a person', direct({ bot_profile: { id: 'B2' } })],
  ['our own message', direct({ user: 'UBOT' })],
  ['a message in a channel without a mention', mention({ type: 'message', channel_type: 'channel', text: 'fix it' })],
  ['the other event of a mention in a channel', mention({ type: 'message', channel_type: 'channel' })],
  [
    'a follow-up in our thread without a mention',
    mention({ type: 'message', thread_ts: '1700000000.000001', text: 'go' }),
  ],
  ['a mention in a direct conversation', mention({ channel: 'D1' })],
  ['a mention in code', mention({ text: 'use `<@UBOT>` for it' })],
  ['a mention of somebody else', mention({ text: '<@U2> fix it' })],
  ['a mention and nothing else', mention({ text: '<@UBOT>' })],
  ['a message of nobody', mention({ user: undefined })],
  ['a message without its time', mention({ ts: 'now' })],
  ['a channel that is none', mention({ channel: '../etc' })],
  ['a reaction', mention({ type: 'reaction_added' })],
  ['something else than an event', mention({}, { type: 'block_actions' })],
  ['nothing', undefined],
  ['a list', [1, 2]],
  ['an event that is a list', { type: 'event_callback', event_id: 'Ev1', event: [] }],
])('%s is no order', (_what, body) => {
  expect(parseEvent(body, self)).toHaveProperty('ignored')
})

test('a file with words beside it is a message', () => {
  expect(parseEvent(direct({ subtype: 'file_share', files: [{}] }), self)).toHaveProperty('message')
})

test('somebody of another workspace is told from somebody of ours with the same id', () => {
  const foreign = (event: Record<string, unknown>, who = self): unknown => {
    const parsed = parseEvent(mention(event), who)
    return 'message' in parsed ? parsed.message.foreignTeam : parsed
  }
  expect(foreign({ team: 'T1' })).toBeUndefined()
  expect(foreign({ team: 'T1', user_team: 'T2' })).toBe('T2')
  expect(foreign({ source_team: 'T2', team: 'T1' })).toBe('T2')
  expect(foreign({ user_team: 'E1' }, { ...self, enterpriseId: 'E1' as never })).toBeUndefined()
})

test('a conversation’s id names its channel and thread, and nothing else is one', () => {
  expect(threadOf('C1:1712345678.000100')).toEqual({ channel: 'C1', threadTs: '1712345678.000100' })
  expect(threadOf('C1')).toEqual({ channel: 'C1', threadTs: undefined })
  for (const id of ['C1:', ':1.2', 'c1:1.2', 'C1:1.2:3', 'C1:1.2\n', '']) expect(threadOf(id)).toBeUndefined()
})

test.each([
  ['/codebase project', undefined, 'C1'],
  ['/clone https://github.com/acme/app', undefined, 'C1'],
  ['/codebase project', '1700000000.000001', 'C1:1700000000.000001'],
  ['/codebases', undefined, 'C1:1712345678.000100'],
  ['/status', undefined, 'C1:1712345678.000100'],
])('%s in the thread %s is about %s', (text, thread, about) => {
  const parsed = parseEvent(mention({ text: `<@UBOT> ${text}`, thread_ts: thread }), self)
  expect('message' in parsed && conversationIdOf(parsed.message)).toBe(about)
})

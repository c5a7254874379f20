import { describe, expect, test } from 'vitest'
import { until } from '../helpers/server-process.ts'
import { telegramOver, telegramScene } from './telegram-arrange.ts'
import { group, mallory, TOKEN } from './telegram-double.ts'

/* Telegram by the real SDK, over real HTTP: what comes in. */

const SECRET = 'a-secret_of-ours'
const byWebhook = { webhookUrl: 'https://coppice.example/webhooks/telegram', webhookSecret: SECRET }

describe('long polling', () => {
  test('receives messages in order and confirms them', async () => {
    await using scene = await telegramScene()
    const { telegram, platform, received, inbox } = scene
    telegram.webhook = { url: 'https://old.example' }
    telegram.say('said while we were down')
    await platform.start(inbox)
    telegram.say('@coppice_bot in a group', { chat: group })
    telegram.say('people among themselves', { chat: group })
    telegram.choose('status', { chat: group })
    telegram.say('/status@coppice_bot', { chat: group, message: { is_topic_message: true, message_thread_id: 5 } })
    await until('all is confirmed', async () => telegram.waiting.length === 0 || undefined)
    expect(received.map(({ conversationId, text }) => [conversationId, text])).toEqual([
      ['7', 'said while we were down'],
      [String(group.id), 'in a group'],
      [String(group.id), '/status'],
      [`${group.id}:5`, '/status'],
    ])
    expect(telegram.webhook).toBeUndefined()
    expect(platform).not.toHaveProperty('webhook')
    expect(platform.status?.()).toMatchObject({ state: 'connected', lastError: undefined })
  })

  test("doesn't confirm a message that couldn't be stored, or later ones, and retries", async () => {
    let broken = true
    await using scene = await telegramScene({
      accept: async ({ text }, nth) => {
        if (broken && text === 'two') throw new Error('the disk is full')
        return { outcome: 'accepted', id: `${nth}` }
      },
    })
    const { telegram, platform, received, inbox } = scene
    for (const text of ['one', 'two', 'three']) telegram.say(text)
    await platform.start(inbox)
    await until(
      'it was tried again',
      async () => received.filter(({ text }) => text === 'two').length >= 3 || undefined,
    )
    expect(telegram.waiting).toHaveLength(2)
    expect(received.map(({ text }) => text)).not.toContain('three')
    expect(platform.status?.().lastError).toBe('a message could not be saved')
    broken = false
    await until('all is confirmed', async () => telegram.waiting.length === 0 || undefined)
    expect(received.filter(({ text }) => text !== 'two').map(({ text }) => text)).toEqual(['one', 'three'])
  })

  test('receives the next update whatever its number: after a quiet week Telegram restarts at another', async () => {
    await using scene = await telegramScene()
    const { telegram, platform, received, inbox } = scene
    await platform.start(inbox)
    telegram.say('one', { updateId: 900_000 })
    await until('it asks without a number', async () => {
      const { method, payload } = telegram.calls.at(-1) ?? {}
      return (received.length === 1 && method === 'getUpdates' && payload?.['offset'] === 900_001) || undefined
    })
    // The long poll comes to its end with nothing to say, and the next one asks without a number.
    telegram.endPolls()
    await until('it asks again', async () => {
      const last = telegram.calls.findLast(({ method }) => method === 'getUpdates')
      return last?.payload['offset'] === undefined || undefined
    })
    // The new numbers may be old ones: what was heard is another message all the same.
    telegram.say('two', { updateId: 900_000 })
    await until('it is heard', async () => received[1])
    expect(received[1]?.deliveryId).not.toBe(received[0]?.deliveryId)
  })

  test('stops at once during a long poll', async () => {
    await using scene = await telegramScene()
    const { telegram, platform, inbox } = scene
    await platform.start(inbox)
    await until('a long poll is open', async () => telegram.polls > 0 || undefined)
    await platform.stop()
    await until('it is closed', async () => telegram.polls === 0 || undefined)
    expect(platform.status?.().state).toBe('disconnected')
  })

  test.each([
    ['status 500', { how: 'refused', code: 500, description: 'Internal Server Error' }],
    ['an error page', { how: 'page', status: 502 }],
    [
      'a conflict with another process',
      { how: 'refused', code: 409, description: 'Conflict: terminated by other getUpdates' },
    ],
    ['a broken connection', { how: 'lost' }],
  ] as const)('continues after %s', async (_name, failing) => {
    await using scene = await telegramScene()
    const { telegram, platform, received, inbox } = scene
    let asked = 0
    telegram.fail = (method) => (method === 'getUpdates' && asked++ < 3 ? failing : undefined)
    telegram.say('hello')
    await platform.start(inbox)
    await until('the trouble is known', async () => platform.status?.().lastError)
    await until('it was heard', async () => received[0])
    await until('it is connected', async () => platform.status?.().state === 'connected' || undefined)
    expect(received.map(({ text }) => text)).toEqual(['hello'])
  })

  test('starts once Telegram can be reached', async () => {
    await using scene = await telegramScene()
    const { telegram, platform, received, inbox } = scene
    telegram.fail = () => ({ how: 'page', status: 503 })
    await platform.start(inbox)
    expect(platform.status?.()).toMatchObject({ state: 'connecting', lastError: expect.stringContaining('Telegram') })
    telegram.fail = () => undefined
    telegram.say('hello')
    await until('it was heard', async () => received[0])
  })
})

describe('allowed users', () => {
  test('messages from others are ignored, logged with their user ID, and confirmed', async () => {
    await using scene = await telegramScene()
    const { telegram, platform, received, inbox, log } = scene
    await platform.start(inbox)
    telegram.say('@coppice_bot delete everything', { from: mallory, chat: group })
    telegram.say('hello')
    await until('all is confirmed', async () => telegram.waiting.length === 0 || undefined)
    expect(received.map(({ text }) => text)).toEqual(['hello'])
    expect(log.join('')).toContain(`"userId":"${mallory.id}"`)
    expect(telegram.messages).toEqual([])
  })

  test('others are told in private, once a day', async () => {
    await using scene = await telegramScene()
    const { telegram, platform, received, inbox } = scene
    await platform.start(inbox)
    const chat = { id: mallory.id, type: 'private' }
    for (const text of ['hello', 'hello?']) telegram.say(text, { from: mallory, chat })
    await until('they are told', async () => telegram.said(mallory.id)[0])
    telegram.say('done')
    await until('all is confirmed', async () => telegram.waiting.length === 0 || undefined)
    expect(telegram.said(mallory.id)).toEqual([expect.stringContaining(`user ID, ${mallory.id}`)])
    expect(received.map(({ text }) => text)).toEqual(['done'])
  })

  test.each([
    [{ allowedUsers: [] }, 'no allowed users'],
    [{ botToken: 'nonsense' }, "isn't a bot token"],
    [{ webhookUrl: 'https://x.example' }, 'has no secret'],
    [{ webhookUrl: 'https://x.example', webhookSecret: 'a b' }, 'characters that Telegram rejects'],
  ])('%j is rejected before connecting', async (settings, sentence) => {
    await expect(telegramOver(settings)).rejects.toMatchObject({
      code: 'config-invalid',
      message: expect.stringContaining(sentence),
      remedy: expect.any(String),
    })
  })

  test('an invalid token is rejected at the start', async () => {
    await using scene = await telegramScene({ settings: { botToken: '1:another' } })
    await expect(scene.platform.start(scene.inbox)).rejects.toMatchObject({
      code: 'config-invalid',
      message: 'Telegram rejected the bot token: Unauthorized',
    })
    expect(scene.platform.status?.().state).toBe('disconnected')
  })
})

describe('the webhook', () => {
  const request = (update: unknown, secret: string | undefined = SECRET) => ({
    headers: secret === undefined ? {} : { 'x-telegram-bot-api-secret-token': secret },
    body: Buffer.from(typeof update === 'string' ? update : JSON.stringify(update)),
  })

  test('is registered with its secret, and stays registered after a stop', async () => {
    await using scene = await telegramScene({ settings: byWebhook })
    const { telegram, platform, received, inbox } = scene
    await platform.start(inbox)
    expect(telegram.webhook).toMatchObject({
      url: byWebhook.webhookUrl,
      secret_token: SECRET,
      allowed_updates: ['message', 'callback_query'],
    })
    expect(await platform.webhook?.(request(telegram.updateOf('hello')))).toEqual({ status: 200 })
    expect(received.map(({ text }) => text)).toEqual(['hello'])
    expect(platform.status?.()).toMatchObject({ state: 'connected', lastMessageAt: expect.any(Number) })
    await platform.stop()
    expect(telegram.webhook).toBeDefined()
    expect(await platform.webhook?.(request(telegram.updateOf('later')))).toMatchObject({ status: 503 })
    expect(telegram.calls.some(({ method }) => method === 'getUpdates')).toBe(false)
  })

  test.each([undefined, '', `${SECRET}x`, SECRET.slice(1), SECRET.toUpperCase()])(
    'rejects the secret %j without reading the body',
    async (secret) => {
      await using scene = await telegramScene({ settings: byWebhook })
      const { telegram, platform, received, inbox } = scene
      await platform.start(inbox)
      const headers = secret === undefined ? {} : { 'x-telegram-bot-api-secret-token': secret }
      const { body } = request(telegram.updateOf('hello'))
      expect(await platform.webhook?.({ headers, body })).toMatchObject({ status: 401 })
      expect(received).toEqual([])
    },
  )

  test("acknowledges a malformed update, but none that couldn't be stored", async () => {
    await using scene = await telegramScene({
      settings: byWebhook,
      accept: () => Promise.reject(new Error('the disk is full')),
    })
    const { telegram, platform, inbox } = scene
    await platform.start(inbox)
    expect(await platform.webhook?.(request(telegram.updateOf('hello')))).toMatchObject({ status: 503 })
    expect(await platform.webhook?.(request('{'))).toEqual({ status: 200 })
  })

  test('that Telegram rejects is a configuration error at the start', async () => {
    await using scene = await telegramScene({ settings: { ...byWebhook, webhookUrl: 'ftp://x' } })
    await expect(scene.platform.start(scene.inbox)).rejects.toMatchObject({
      code: 'config-invalid',
      message: 'Telegram rejected the webhook: Bad Request: bad webhook',
    })
  })
})

test("the commands are in Telegram's menu, and the token isn't in the log", async () => {
  await using scene = await telegramScene()
  const { telegram, platform, inbox, log } = scene
  telegram.fail = (method) => (method === 'getUpdates' ? { how: 'lost' } : undefined)
  await platform.start(inbox)
  const registered = await until('they are registered', async () =>
    telegram.calls.find(({ method }) => method === 'setMyCommands'),
  )
  expect(registered.payload['commands']).toContainEqual({ command: 'status', description: expect.any(String) })
  await until('a failure is logged', async () => log.find((line) => line.includes('polling Telegram failed')))
  expect(log.join('')).not.toContain(TOKEN)
})

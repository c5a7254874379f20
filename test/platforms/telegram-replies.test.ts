import { progressOf, status } from '../helpers/progress.ts'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createChanges } from '../../src/conversations/changes.ts'
import { DeliveryError, type OutgoingMessage } from '../../src/conversations/outbox/delivery.ts'
import { createOutbox } from '../../src/conversations/outbox/outbox.ts'
import { createLogger } from '../../src/process/log.ts'
import { until } from '../helpers/server-process.ts'
import { openTestStore, type TestStore } from '../helpers/store.ts'
import { telegramScene, type TelegramScene } from './telegram-arrange.ts'
import { ada, type Failing, group } from './telegram-double.ts'

/* What goes out, by the real SDK over real HTTP; and Telegram away, slow or angry. */

let scene: TelegramScene
beforeEach(async () => {
  scene = await telegramScene()
  await scene.platform.start(scene.inbox)
})
afterEach(() => scene[Symbol.asyncDispose]())

const chat = String(ada.id)

const reply = (text: string, more: Partial<OutgoingMessage> = {}): OutgoingMessage => ({
  id: `${text}.0`,
  conversationId: chat,
  role: 'agent',
  text,
  part: 1,
  parts: 1,
  ...more,
})

const failSending = (failing: Failing | undefined): void => {
  scene.telegram.fail = (method) => (/^(?:send|edit)Message/.test(method) ? failing : undefined)
}

const failure = async (message: OutgoingMessage): Promise<DeliveryError> => {
  const error: unknown = await scene.platform.send(message).then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof DeliveryError)) throw new Error(`no delivery error: ${String(error)}`)
  return error
}

describe('a reply', () => {
  test('goes to its chat or topic, rendered and without link previews', async () => {
    const { telegram, platform } = scene
    await platform.send(reply('**Done** with `a < b`'))
    await platform.send(reply('There', { conversationId: `${group.id}:5` }))
    expect(telegram.messages).toMatchObject([
      { chat: ada.id, thread: undefined, text: 'Done with a < b', raw: '<b>Done</b> with <code>a &lt; b</code>' },
      { chat: group.id, thread: 5, text: 'There' },
    ])
    const sent = telegram.calls.find(({ method }) => method === 'sendMessage')
    expect(sent?.payload).toMatchObject({ parse_mode: 'HTML', link_preview_options: { is_disabled: true } })
  })

  test("is sent as plain text if Telegram can't parse it", async () => {
    const { telegram, platform, log } = scene
    telegram.fail = (_method, { parse_mode: mode }) =>
      mode === 'HTML' ? { how: 'refused', code: 400, description: "Bad Request: can't parse entities: x" } : undefined
    await platform.send(reply('**Done**'))
    expect(telegram.said(ada.id)).toEqual(['**Done**'])
    expect(log.join('')).toContain('rejected the formatting')
  })

  test("isn't sent if empty", async () => {
    await scene.platform.send(reply(' \n'))
    expect(scene.telegram.calls.some(({ method }) => method === 'sendMessage')).toBe(false)
  })

  test('goes to the new chat if a group became a supergroup', async () => {
    const { telegram, platform } = scene
    telegram.fail = (method, { chat_id: id }) =>
      method === 'sendMessage' && id === -55
        ? {
            how: 'refused',
            code: 400,
            description: 'Bad Request: group chat was upgraded to a supergroup chat',
            parameters: { migrate_to_chat_id: group.id },
          }
        : undefined
    await platform.send(reply('one', { conversationId: '-55' }))
    await platform.send(reply('two', { conversationId: '-55' }))
    expect(telegram.said(group.id)).toEqual(['one', 'two'])
  })

  test.each<[string, Failing]>([
    ['status 500', { how: 'refused', code: 500, description: 'Internal Server Error' }],
    ['a 403 page from a proxy', { how: 'page', status: 403 }],
    ['no response', { how: 'silent' }],
    ['status 401', { how: 'refused', code: 401, description: 'Unauthorized' }],
  ])('is sent again after %s', async (_name, failing) => {
    failSending(failing)
    expect(await failure(reply('one'))).toMatchObject({ kind: 'unreachable' })
    failSending(undefined)
    await scene.platform.send(reply('one'))
    expect(scene.telegram.said(ada.id)).toEqual(['one'])
  })

  test.each([
    ['blocked', 403, 'Forbidden: bot was blocked by the user'],
    ['unknown chat', 400, 'Bad Request: chat not found'],
    ['unknown topic', 400, 'Bad Request: message thread not found'],
    ['no rights', 400, 'Bad Request: not enough rights to send text messages to the chat'],
  ])("that Telegram refuses isn't sent again: %s", async (_name, code, description) => {
    failSending({ how: 'refused', code, description })
    expect(await failure(reply('one'))).toMatchObject({ kind: 'refused', message: `Telegram answered: ${description}` })
  })

  test('waits as long as Telegram asks', async () => {
    const parameters = { retry_after: 23 }
    failSending({ how: 'refused', code: 429, description: 'Too Many Requests: retry after 23', parameters })
    expect(await failure(reply('one'))).toMatchObject({ kind: 'unreachable', retryAfterMs: 23_000 })
  })

  test('to an unknown conversation is refused', async () => {
    expect(await failure(reply('one', { conversationId: 'C1:2.3' }))).toMatchObject({ kind: 'refused' })
  })
})

describe('a preview', () => {
  const shows = (text: string): Promise<string> =>
    until(`it shows ${text}`, async () => scene.telegram.said(ada.id).find((one) => one === text))

  test('grows in one message, which becomes the reply', async () => {
    const { telegram, platform } = scene
    platform.preview?.(chat, progressOf('Let me'))
    await shows(`Let me\n\n${status} …`)
    platform.preview?.(chat, progressOf('Let me see'))
    await shows(`Let me see\n\n${status} …`)
    await platform.send(reply('Let me see. Done.'))
    await platform.send(reply('And more.', { part: 2, parts: 2 }))
    expect(telegram.said(ada.id)).toEqual(['Let me see. Done.', 'And more.'])
  })

  test('is replaced by a reply below a notice that was posted meanwhile', async () => {
    const { telegram, platform } = scene
    platform.preview?.(chat, progressOf('Let me'))
    await shows(`Let me\n\n${status} …`)
    await platform.send(reply('A notice', { role: 'system' }))
    await platform.send(reply('Done.'))
    expect(telegram.said(ada.id)).toEqual(['A notice', 'Done.'])
  })

  test('is replaced by a reply below what a person wrote meanwhile', async () => {
    const { telegram, platform, received } = scene
    platform.preview?.(chat, progressOf('Let me'))
    await shows(`Let me\n\n${status} …`)
    const [{ id } = { id: 0 }] = telegram.messages
    telegram.say('hurry')
    await until('it was heard', async () => received[0])
    await until('it is confirmed', async () => telegram.waiting.length === 0 || undefined)
    await platform.send(reply('Done.'))
    expect(telegram.said(ada.id)).toEqual(['Done.'])
    expect(telegram.messages[0]?.id).not.toBe(id)
  })

  test('of another run is a new message', async () => {
    const { telegram, platform } = scene
    platform.preview?.(chat, progressOf('Let me'))
    await shows(`Let me\n\n${status} …`)
    platform.preview?.(chat, progressOf('Now then', { startedAt: 10 ** 14 + 1 }))
    await shows(`Now then\n\n${status} …`)
    expect(telegram.said(ada.id)).toEqual([`Now then\n\n${status} …`])
  })

  test('that becomes the reply is retried in the same message, and the reply is there once', async () => {
    const { telegram, platform } = scene
    platform.preview?.(chat, progressOf('Let me'))
    await shows(`Let me\n\n${status} …`)
    const [{ id } = { id: 0 }] = telegram.messages
    failSending({ how: 'lost' })
    await failure(reply('Done.'))
    failSending(undefined)
    await platform.send(reply('Done.'))
    expect(telegram.said(ada.id)).toEqual(['Done.'])
    expect(telegram.messages[0]?.id).toBe(id)
  })

  test("that somebody deleted doesn't stop the reply", async () => {
    const { telegram, platform } = scene
    platform.preview?.(chat, progressOf('Let me'))
    await shows(`Let me\n\n${status} …`)
    telegram.messages.length = 0
    await platform.send(reply('Done.'))
    expect(telegram.said(ada.id)).toEqual(['Done.'])
  })

  test("waits out a flood wait together with its chat's replies, without calls", async () => {
    const { telegram, platform, time } = scene
    const parameters = { retry_after: 60 }
    failSending({ how: 'refused', code: 429, description: 'Too Many Requests: retry after 60', parameters })
    platform.preview?.(chat, progressOf('Let me'))
    const previews = (): number => telegram.calls.filter(({ method }) => method === 'sendMessage').length
    await until('it was tried', async () => previews() > 0 || undefined)
    failSending(undefined)
    platform.preview?.(chat, progressOf('Let me see'))
    expect(await failure(reply('Done.'))).toMatchObject({ kind: 'unreachable' })
    // A topic of the same chat.
    expect(await failure(reply('There', { conversationId: `${chat}:5` }))).toMatchObject({ kind: 'unreachable' })
    expect(previews()).toBe(1)
    await platform.send(reply('Elsewhere', { conversationId: '8' }))
    time.offset += 60_000
    await platform.send(reply('Done.'))
    expect(telegram.said(ada.id)).toEqual(['Done.'])
    expect(previews()).toBe(3)
  })
})

describe('the outbox', () => {
  let opened: TestStore
  beforeEach(async () => {
    opened = await openTestStore()
  })
  afterEach(() => opened.close())

  test('delivers every reply in order after an outage', async () => {
    const { telegram, platform } = scene
    const { store } = opened
    const outbox = createOutbox({
      store,
      deliveries: new Map([['telegram', platform]]),
      changes: createChanges(),
      clock: Date.now,
      log: createLogger({ write: () => undefined, level: 'error', clock: Date.now, redact: (text) => text }),
      redact: (text) => text,
      failpoint: async () => undefined,
    })
    const chats = [ada.id, group.id, 8]
    const wanted = Array.from({ length: 4 }, (_, nth) => `answer ${nth}`)
    await store.outbox.append(
      chats.flatMap((id) =>
        wanted.map((text, nth) => ({
          id: `${id}-${nth}`,
          inboxId: undefined,
          platform: 'telegram',
          conversationId: String(id),
          key: `${id}-${nth}`,
          role: 'agent' as const,
          text,
          nextAttemptAt: Date.now(),
          createdAt: Date.now() + nth,
        })),
      ),
    )
    const failures: readonly Failing[] = [
      { how: 'refused', code: 500, description: 'Internal Server Error' },
      { how: 'lost' },
      { how: 'refused', code: 429, description: 'Too Many Requests', parameters: { retry_after: 1 } },
      { how: 'silent' },
      { how: 'page', status: 502 },
    ]
    let asked = 0
    telegram.fail = (method) => (method === 'sendMessage' && asked < 7 ? failures[asked++ % 5] : undefined)
    outbox.kick()
    await until('everything has arrived', async () => {
      const due = await store.outbox.nextDueAt(['telegram'])
      return due === undefined ? true : undefined
    })
    await outbox.stop()
    expect(asked).toBe(7)
    // Where only the confirmation was lost it is there twice: Telegram gives no way to tell. Never out of order.
    for (const id of chats) {
      const said = telegram.said(id)
      expect(said.filter((text, nth) => text !== said[nth - 1])).toEqual(wanted)
    }
  })
})

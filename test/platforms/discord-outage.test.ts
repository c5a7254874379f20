import { progressOf } from '../helpers/progress.ts'
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createChanges } from '../../src/conversations/changes.ts'
import { DeliveryError, type OutgoingMessage } from '../../src/conversations/outbox/delivery.ts'
import { createOutbox } from '../../src/conversations/outbox/outbox.ts'
import { createDiscordPlatform } from '../../src/platforms/discord/platform.ts'
import type { Platform } from '../../src/platforms/platform.ts'
import { createLogger } from '../../src/process/log.ts'
import { type DiscordDouble, startDiscord } from '../helpers/discord-double/double.ts'
import type { Failing } from '../helpers/discord-double/rest.ts'
import { alice } from '../helpers/discord-double/state.ts'
import { memoryForTest } from '../helpers/platform-memory.ts'
import { until } from '../helpers/server-process.ts'
import { openTestStore, type TestStore } from '../helpers/store.ts'

/* Discord is away, slow or angry: every reply arrives, in order, and none twice. */

const log = createLogger({ write: () => undefined, level: 'error', clock: Date.now, redact: (text) => text })

let discord: DiscordDouble
let platform: Platform
let ahead = 0
beforeEach(async () => {
  discord = await startDiscord()
  ahead = 0
  const own = { botToken: discord.token, allowedUsers: [alice.id], apiUrl: discord.apiUrl }
  platform = await createDiscordPlatform(
    own,
    { log, clock: () => Date.now() + ahead, ids: randomUUID, memory: memoryForTest() },
    { requestTimeoutMs: 1_500, previewEveryMs: 20 },
  )
})
afterEach(async () => {
  await platform.stop()
  await discord.close()
})

const reply = (text: string, more: Partial<OutgoingMessage> = {}): OutgoingMessage => ({
  id: `${text}.0`,
  conversationId: discord.general.id,
  role: 'agent',
  text,
  part: 1,
  parts: 1,
  ...more,
})

const failure = async (message: OutgoingMessage): Promise<DeliveryError> => {
  const error: unknown = await platform.send(message).then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof DeliveryError)) throw new Error(`no delivery error: ${String(error)}`)
  return error
}

describe('a reply', () => {
  test.each<[string, Failing]>([
    ['status 500', { how: 'error', status: 500 }],
    ['status 502', { how: 'error', status: 502 }],
    ['a 403 page from a proxy', { how: 'error', status: 403 }],
    ['no response', { how: 'silent' }],
    ['status 401', { how: 'refused', status: 401, code: 0 }],
    ['an overload error', { how: 'refused', status: 403, code: 130_000 }],
  ])('is sent again after %s', async (_name, failing) => {
    discord.breakSending(failing)
    expect(await failure(reply('one'))).toMatchObject({ kind: 'unreachable' })
    discord.breakSending(undefined)
    await platform.send(reply('one'))
    expect(discord.saidIn(discord.general.id)).toEqual(['one'])
  })

  test.each([
    ['unknown channel', 404, 10_003],
    ['no access', 403, 50_001],
    ['no permission', 403, 50_013],
    ['invalid form', 400, 50_035],
  ])("that Discord refuses isn't sent again: %s", async (_name, status, code) => {
    discord.breakSending({ how: 'refused', status, code })
    expect(await failure(reply('one'))).toMatchObject({ kind: 'refused' })
  })

  test('waits as long as Discord asks: in the SDK if that is short, else in the outbox', async () => {
    discord.breakSending({ how: 'limited', seconds: 20 })
    const { kind, retryAfterMs } = await failure(reply('one'))
    expect(kind).toBe('unreachable')
    expect(retryAfterMs).toBeGreaterThanOrEqual(20_000)
    discord.breakSending(undefined)
    expect(await failure(reply('one'))).toMatchObject({ kind: 'unreachable' })
    ahead += retryAfterMs ?? 0
    let asked = 0
    discord.rest.fail = ({ method }) =>
      method === 'POST' && asked++ === 0 ? { how: 'limited', seconds: 0.1 } : undefined
    await platform.send(reply('two'))
    expect(asked).toBe(2)
    expect(discord.saidIn(discord.general.id)).toEqual(['two'])
  })

  test.each([0, -5, Number.NaN])('returns to the outbox if Discord asks to wait %d s', async (seconds) => {
    let asked = 0
    discord.rest.fail = ({ method }) => (method === 'POST' && asked++ < 100 ? { how: 'limited', seconds } : undefined)
    expect(await failure(reply('one'))).toMatchObject({ kind: 'unreachable' })
    expect(asked).toBe(1)
  })

  test('returns to the outbox if Discord keeps asking for short waits', async () => {
    discord.breakSending({ how: 'limited', seconds: 0.05 })
    expect(await failure(reply('one'))).toMatchObject({ kind: 'unreachable' })
    discord.breakSending(undefined)
    await platform.send(reply('one'))
    expect(discord.saidIn(discord.general.id)).toEqual(['one'])
  })

  test('is posted once if the response was lost', async () => {
    discord.breakSending({ how: 'lost' })
    await failure(reply('one'))
    expect(discord.saidIn(discord.general.id)).toEqual(['one'])
    discord.breakSending(undefined)
    await platform.send(reply('one'))
    expect(discord.saidIn(discord.general.id)).toEqual(['one'])
  })

  test('that replaces a preview is retried in the same message', async () => {
    platform.preview?.(discord.general.id, progressOf('Let me'))
    await until('it shows', async () => discord.saidIn(discord.general.id)[0])
    discord.breakSending({ how: 'error', status: 500 })
    await failure(reply('one'))
    discord.breakSending(undefined)
    await platform.send(reply('one'))
    expect(discord.saidIn(discord.general.id)).toEqual(['one'])
  })

  test('creates its thread once, even if responses were lost', async () => {
    const { id } = discord.say('@coppice x', { quietly: true })
    const conversationId = `${discord.general.id}:${id}`
    discord.breakSending({ how: 'lost' })
    await failure(reply('one', { conversationId }))
    discord.breakSending(undefined)
    await platform.send(reply('one', { conversationId }))
    expect(discord.saidIn(id)).toEqual(['one'])
  })
})

describe('the outbox', () => {
  let opened: TestStore
  beforeEach(async () => {
    opened = await openTestStore()
  })
  afterEach(() => opened.close())

  test('delivers every reply once and in order after an outage', async () => {
    const { store } = opened
    const outbox = createOutbox({
      store,
      deliveries: new Map([['discord', platform]]),
      changes: createChanges(),
      clock: Date.now,
      log,
      redact: (text) => text,
      failpoint: async () => undefined,
    })
    const places = [discord.general.id, '555555555555555555', '666666666666666666']
    for (const id of places) discord.state.addChannel({ id, type: 1 })
    const wanted = Array.from({ length: 4 }, (_, nth) => `answer ${nth}`)
    const rows = places.flatMap((conversationId) =>
      wanted.map((text, nth) => ({
        id: `${conversationId}-${nth}`,
        inboxId: undefined,
        platform: 'discord',
        conversationId,
        key: `${conversationId}-${nth}`,
        role: 'agent' as const,
        text,
        nextAttemptAt: Date.now(),
        createdAt: Date.now() + nth,
      })),
    )
    await store.outbox.append(rows)
    const failures: readonly Failing[] = [
      { how: 'error', status: 500 },
      { how: 'lost' },
      { how: 'limited', seconds: 0.05 },
      { how: 'silent' },
      { how: 'lost' },
      { how: 'error', status: 503 },
    ]
    let asked = 0
    discord.rest.fail = ({ method }) =>
      method === 'POST' && asked < 24 ? failures[asked++ % failures.length] : undefined
    outbox.kick()
    await until('everything has arrived', async () => {
      const due = await store.outbox.nextDueAt(['discord'])
      return due === undefined ? true : undefined
    })
    await outbox.stop()
    expect(asked).toBe(24)
    for (const place of places) expect(discord.saidIn(place)).toEqual(wanted)
  })
})

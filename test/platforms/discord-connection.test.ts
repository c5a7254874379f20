import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createDiscordPlatform, type Pace } from '../../src/platforms/discord/platform.ts'
import type { Platform } from '../../src/platforms/platform.ts'
import { createLogger } from '../../src/process/log.ts'
import { inboxOf } from '../helpers/inbox.ts'
import { type DiscordDouble, startDiscord } from '../helpers/discord-double/double.ts'
import { alice } from '../helpers/discord-double/state.ts'
import { memoryForTest } from '../helpers/platform-memory.ts'
import { until } from '../helpers/server-process.ts'

/* The gateway as it really is: it breaks, asks to come again, forgets the session, and refuses. */

let discord: DiscordDouble
let platform: Platform
let received: string[]
let logged: string[]

const make = async (settings: Record<string, unknown> = {}, pace: Partial<Pace> = {}): Promise<void> => {
  const log = createLogger({
    write: (line) => logged.push(line),
    level: 'debug',
    clock: Date.now,
    redact: (text) => text,
  })
  const own = { botToken: discord.token, allowedUsers: [alice.id], apiUrl: discord.apiUrl, ...settings }
  platform = await createDiscordPlatform(
    own,
    { log, clock: Date.now, ids: randomUUID, memory: memoryForTest() },
    { requestTimeoutMs: 2_000, ...pace },
  )
}

const start = (): Promise<void> =>
  platform.start(
    inboxOf(async ({ text, deliveryId }) => {
      received.push(text)
      return { outcome: 'accepted', id: deliveryId }
    }),
  )

const heard = (text: string): Promise<unknown> =>
  until(`"${text}" is heard`, async () => received.includes(text) || undefined)
const inState = (state: string): Promise<unknown> =>
  until(`it is ${state}`, async () => platform.status?.().state === state || undefined)

beforeEach(async () => {
  discord = await startDiscord()
  received = []
  logged = []
})
afterEach(async () => {
  await platform.stop()
  await discord.close()
})

describe('a connection', () => {
  test('requests only the intents it needs', async () => {
    await make()
    await start()
    // Guilds, GuildMessages, DirectMessages, MessageContent
    expect(discord.gateway.identified).toEqual([{ intents: (1 << 0) | (1 << 9) | (1 << 12) | (1 << 15) }])
    expect(platform.status?.()).toMatchObject({ state: 'connected', lastError: undefined })
  })

  test('that breaks is resumed, and messages sent meanwhile arrive', async () => {
    await make()
    await start()
    discord.gateway.shut = true
    discord.gateway.drop()
    await inState('connecting')
    discord.say('@coppice meanwhile')
    discord.gateway.shut = false
    await heard('meanwhile')
    expect(discord.gateway.resumed.count).toBe(1)
    expect(discord.gateway.identified).toHaveLength(1)
    await inState('connected')
  })

  test('is resumed when Discord asks for it, and after a temporary error', async () => {
    await make()
    await start()
    discord.gateway.askToReconnect()
    await until('it is resumed', async () => discord.gateway.resumed.count === 1 || undefined)
    discord.gateway.close(4000)
    await until('it is resumed again', async () => discord.gateway.resumed.count === 2 || undefined)
    discord.say('@coppice still there?')
    await heard('still there?')
    expect(received).toEqual(['still there?'])
  })

  test('starts a new session when the old one is invalid', async () => {
    await make()
    await start()
    discord.gateway.invalidate()
    await until('it identifies again', async () => discord.gateway.identified.length === 2 || undefined)
    discord.say('@coppice hello again')
    await heard('hello again')
  })

  test('stays closed after a stop, even if it was being resumed', async () => {
    await make()
    await start()
    discord.gateway.drop()
    await inState('connecting')
    await platform.stop()
    expect(platform.status?.().state).toBe('disconnected')
    // The SDK pauses for half a second before it comes again.
    await new Promise((resolve) => setTimeout(resolve, 1_200))
    expect(discord.gateway.connections).toBe(0)
  })

  test("survives an event that the SDK can't parse", async () => {
    await make()
    await start()
    discord.gateway.dispatch('CHANNEL_UPDATE', null)
    discord.gateway.dispatch('MESSAGE_CREATE', {})
    discord.gateway.dispatch('INTERACTION_CREATE', { id: '1', type: 2, data: { type: 1 } })
    discord.say('@coppice go on')
    await heard('go on')
    expect(logged.some((line) => line.includes('could not be read'))).toBe(true)
  })
})

describe('a start', () => {
  test('fails without a token or without allowed users', async () => {
    await make()
    await expect(make({ botToken: undefined })).rejects.toMatchObject({ code: 'config-invalid' })
    await expect(make({ botToken: 'Bot abc' })).rejects.toThrow('the bot token has invalid characters')
    await expect(make({ allowedUsers: undefined })).rejects.toThrow('no allowed users configured')
    await expect(make({ allowedUsers: [] })).rejects.toMatchObject({ code: 'config-invalid' })
  })

  test('with a bad token fails with a clear error', async () => {
    await make({ botToken: 'another.token' })
    await expect(start()).rejects.toMatchObject({
      code: 'config-invalid',
      message: 'Discord rejected the bot token',
    })
    expect(platform.status?.()).toMatchObject({
      state: 'disconnected',
      lastError: 'Discord rejected the bot token',
    })
  })

  test('without the message content intent fails with a clear error', async () => {
    await make()
    discord.gateway.withoutIntents = true
    await expect(start()).rejects.toThrow("Discord doesn't let the bot read messages")
    expect(discord.gateway.connections).toBe(0)
  })

  test('succeeds while Discord is down, and connects once it is back', async () => {
    await make({}, { startMs: 300 })
    discord.rest.fail = ({ path }) => (path === '/gateway/bot' ? { how: 'error', status: 503 } : undefined)
    await start()
    expect(platform.status?.().state).toBe('connecting')
    await until('it was tried', async () => platform.status?.().lastError)
    discord.rest.fail = () => undefined
    await inState('connected')
    discord.say('@coppice hello')
    await heard('hello')
  })

  test('disconnects and says why when the token is revoked later', async () => {
    await make()
    await start()
    discord.gateway.close(4004)
    await inState('disconnected')
    expect(platform.status?.().lastError).toBe('Discord rejected the bot token')
  })

  test("succeeds and reports it if the commands can't be registered", async () => {
    discord.rest.fail = ({ method }) => (method === 'PUT' ? { how: 'refused', status: 403, code: 50_001 } : undefined)
    await make()
    await start()
    await until('it says so', async () => platform.status?.().lastError)
    expect(platform.status?.()).toMatchObject({ state: 'connected', lastError: 'the commands could not be registered' })
  })

  test('never logs the token', async () => {
    await make()
    await start()
    discord.gateway.drop()
    await inState('connecting')
    await inState('connected')
    expect(logged.join('')).not.toContain(discord.token)
  })
})

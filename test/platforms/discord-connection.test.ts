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
  test('asks for no more than it needs', async () => {
    await make()
    await start()
    // Guilds, GuildMessages, DirectMessages, MessageContent
    expect(discord.gateway.identified).toEqual([{ intents: (1 << 0) | (1 << 9) | (1 << 12) | (1 << 15) }])
    expect(platform.status?.()).toMatchObject({ state: 'connected', lastError: undefined })
  })

  test('that breaks is resumed, and what was said meanwhile is heard', async () => {
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

  test('is taken up again when Discord asks for it, and after an error that passes', async () => {
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

  test('begins anew when its session is no more', async () => {
    await make()
    await start()
    discord.gateway.invalidate()
    await until('it identifies again', async () => discord.gateway.identified.length === 2 || undefined)
    discord.say('@coppice hello again')
    await heard('hello again')
  })

  test('is ended by a stop for good, also in the middle of being taken up again', async () => {
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

  test('survives an event that the SDK cannot read', async () => {
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
  test('without a token or without anybody who may speak is refused', async () => {
    await make()
    await expect(make({ botToken: undefined })).rejects.toMatchObject({ code: 'config-invalid' })
    await expect(make({ botToken: 'Bot abc' })).rejects.toThrow('the bot token has invalid characters')
    await expect(make({ allowedUsers: undefined })).rejects.toThrow('no allowed users configured')
    await expect(make({ allowedUsers: [] })).rejects.toMatchObject({ code: 'config-invalid' })
  })

  test('with a bad token is refused in one sentence', async () => {
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

  test('without the permission to read messages is refused in one sentence', async () => {
    await make()
    discord.gateway.withoutIntents = true
    await expect(start()).rejects.toThrow("Discord doesn't let the bot read messages")
    expect(discord.gateway.connections).toBe(0)
  })

  test('while Discord is away goes on, and the connection is made when it is back', async () => {
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

  test('with a token that is taken back later is over, and says why', async () => {
    await make()
    await start()
    discord.gateway.close(4004)
    await inState('disconnected')
    expect(platform.status?.().lastError).toBe('Discord rejected the bot token')
  })

  test('where the commands cannot be registered goes on and says so', async () => {
    discord.rest.fail = ({ method }) => (method === 'PUT' ? { how: 'refused', status: 403, code: 50_001 } : undefined)
    await make()
    await start()
    await until('it says so', async () => platform.status?.().lastError)
    expect(platform.status?.()).toMatchObject({ state: 'connected', lastError: 'the commands could not be registered' })
  })

  test('never writes the token into the log', async () => {
    await make()
    await start()
    discord.gateway.drop()
    await inState('connecting')
    await inState('connected')
    expect(logged.join('')).not.toContain(discord.token)
  })
})
